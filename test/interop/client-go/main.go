// Command client-go elects a leader as the package comment of k8s.io/client-go/tools/leaderelection shows it.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/leaderelection"

	"kilit.dev/interop/program"
)

func main() {
	p := program.Open()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock:            p.Lock(),
			LeaseDuration:   program.LeaseDuration,
			RenewDeadline:   program.RenewDeadline,
			RetryPeriod:     program.RetryPeriod,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: p.Lead,
				OnStoppedLeading: func() { p.Say("stopped", nil) },
			},
		})
		p.Say("ended", nil)
	}()
	// A real program exits when it stopped leading. This one stays, to be asked what it would believe.
	p.Answer()
}
