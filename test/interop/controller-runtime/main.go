// Command controller-runtime elects a leader by a manager, whose only Runnable is the work of a leader.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kilit.dev/interop/program"
)

func main() {
	log.SetLogger(logr.Discard())
	p := program.Open()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mgr, err := manager.New(p.Config, manager.Options{
		Metrics:                             server.Options{BindAddress: "0"},
		LeaderElection:                      true,
		LeaderElectionID:                    p.Lease,
		LeaderElectionNamespace:             p.Namespace,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: p.Lock(),
		LeaseDuration:                       ptr.To(program.LeaseDuration),
		RenewDeadline:                       ptr.To(program.RenewDeadline),
		RetryPeriod:                         ptr.To(program.RetryPeriod),
	})
	if err == nil {
		err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			p.Lead(ctx)
			<-ctx.Done()
			return nil
		}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { p.Say("ended", mgr.Start(ctx)) }()
	p.Answer()
}
