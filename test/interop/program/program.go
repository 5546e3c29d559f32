// Package program is what both test programs share: settings by environment, one JSON line for each thing that happens.
package program

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"kilit.dev/interop/fencedtoken"
)

// Short, so that tests wait less; in the proportions of client-go's own.
const (
	LeaseDuration = 3 * time.Second
	RenewDeadline = 2 * time.Second
	RetryPeriod   = 400 * time.Millisecond
)

// Program elects a leader over the Lease that the environment names, and tells of it.
type Program struct {
	Config    *rest.Config
	Namespace string
	Lease     string
	Identity  string
	Recorder  *fencedtoken.Recorder

	client coordinationv1client.CoordinationV1Interface
	output sync.Mutex
	term   sync.Mutex
	own    fencedtoken.Grant
}

// Open reads KUBECONFIG, NAMESPACE, LEASE and IDENTITY.
func Open() *Program {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := coordinationv1client.NewForConfig(config)
	check(err)
	identity := os.Getenv("IDENTITY")
	return &Program{
		Config:    config,
		Namespace: os.Getenv("NAMESPACE"),
		Lease:     os.Getenv("LEASE"),
		Identity:  identity,
		Recorder:  fencedtoken.Record(client, identity),
		client:    client,
	}
}

// Lock is client-go's own, whose client is listened to.
func (p *Program) Lock() *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  v1.ObjectMeta{Namespace: p.Namespace, Name: p.Lease},
		Client:     p.Recorder,
		LockConfig: resourcelock.ResourceLockConfig{Identity: p.Identity},
		Labels:     fencedtoken.Labels(),
	}
}

// Lead is the work of a leader: it tells its token, and keeps the grant for `read`.
func (p *Program) Lead(ctx context.Context) {
	p.Say("leading", nil)
	token, err := p.Recorder.Wait(ctx)
	if err != nil {
		p.Say("no token", err)
		return
	}
	own, err := p.Recorder.Own()
	p.term.Lock()
	p.own = own
	p.term.Unlock()
	p.say(map[string]string{"event": "token", "token": token.String()}, err)
}

// Say prints one line.
func (p *Program) Say(event string, err error) { p.say(map[string]string{"event": event}, err) }

func (p *Program) say(line map[string]string, err error) {
	if err != nil {
		line["error"] = err.Error()
	}
	line["identity"] = p.Identity
	text, _ := json.Marshal(line)
	p.output.Lock()
	defer p.output.Unlock()
	fmt.Println(string(text))
}

// Answer answers what is asked on the standard input, a word a line, until it ends:
// `token` by the Recorder; `read` by a GET and the rule; `naive` by a GET and no rule.
func (p *Program) Answer() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		question := lines.Text()
		token, err := p.answer(question)
		p.say(map[string]string{"event": "answer", "question": question, "token": token}, err)
	}
}

func (p *Program) answer(question string) (string, error) {
	if question == "token" {
		token, err := p.Recorder.Token()
		return token.String(), err
	}
	lease, err := p.client.Leases(p.Namespace).Get(context.Background(), p.Lease, v1.GetOptions{})
	if err != nil {
		return "", err
	}
	if question == "naive" {
		return lease.Annotations[fencedtoken.TokenAnnotation], nil
	}
	p.term.Lock()
	defer p.term.Unlock()
	token, err := fencedtoken.Of(lease, p.own)
	return token.String(), err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
