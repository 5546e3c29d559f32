package fencedtoken

import (
	"context"
	"errors"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Recorder knows which grants of one Lease this process itself wrote, and the Lease as the API server last answered.
type Recorder struct {
	client   coordinationv1client.LeasesGetter
	identity string

	mutex sync.Mutex
	// The acquireTimes that this process tried to acquire with, in microseconds: the answer to a write may get lost.
	attempts map[int64]bool
	seen     *coordinationv1.Lease
	changed  chan struct{}
}

// Record listens to the requests of an elector. One Recorder serves one Lease. identity must be that of the elector.
func Record(client coordinationv1client.LeasesGetter, identity string) *Recorder {
	return &Recorder{client: client, identity: identity, attempts: map[int64]bool{}, changed: make(chan struct{})}
}

// Leases makes a Recorder the client of a resourcelock.LeaseLock.
func (r *Recorder) Leases(namespace string) coordinationv1client.LeaseInterface {
	return recorded{LeaseInterface: r.client.Leases(namespace), recorder: r}
}

// Own is the grant that this process holds by all that it knows, or ErrNotHolder.
func (r *Recorder) Own() (Grant, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.own()
}

// Token returns the token of the present term, or ErrNotHolder or ErrNotMinted.
//
// It asks nobody: a process that has lost the Lease and does not know it yet gets its own old token, and never that of
// the process that has the Lease now. Take it once for each term: what is left over of a former term must keep its own.
func (r *Recorder) Token() (Token, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	own, err := r.own()
	if err != nil {
		return 0, err
	}
	return Of(r.seen, own)
}

// Wait returns the token of the present term as soon as there is one: a Lease that was created held gets it at its first
// renewal. ErrNotHolder comes at once, for nothing would mend it within this term. It ends with the context's error and
// the reason for waiting: give it a deadline, or it waits as long as the program leads where kilit mints nothing.
func (r *Recorder) Wait(ctx context.Context) (Token, error) {
	for {
		r.mutex.Lock()
		changed := r.changed
		r.mutex.Unlock()
		token, err := r.Token()
		if err == nil || !errors.Is(err, ErrNotMinted) {
			return token, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

func (r *Recorder) own() (Grant, error) {
	if r.seen == nil {
		return Grant{}, fmt.Errorf("[%w] no Lease has been seen yet", ErrNotHolder)
	}
	held := grantOf(r.seen)
	if held.Holder != r.identity {
		return Grant{}, fmt.Errorf("[%w] Lease %s/%s is held by %q, not by %q. This process is not the leader; let it exit",
			ErrNotHolder, r.seen.Namespace, r.seen.Name, held.Holder, r.identity)
	}
	if !r.attempts[held.AcquireTime.UnixMicro()] {
		return Grant{}, fmt.Errorf("[%w] Lease %s/%s was acquired by another process that is called %q, too. "+
			"Give each process an identity of its own, such as host name and UUID", ErrNotHolder, r.seen.Namespace, r.seen.Name, r.identity)
	}
	return held, nil
}

// sending notes an attempt to acquire. A write with the acquireTime that is there already renews, or goes on with what
// another process of this identity acquired: client-go does that after a restart.
func (r *Recorder) sending(lease *coordinationv1.Lease) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	wanted := grantOf(lease)
	if wanted.Holder != r.identity || wanted.AcquireTime.IsZero() {
		return
	}
	if r.seen != nil {
		held := grantOf(r.seen)
		if held.Holder == r.identity && sameTime(held.AcquireTime, wanted.AcquireTime) {
			return
		}
	}
	r.attempts[wanted.AcquireTime.UnixMicro()] = true
}

func (r *Recorder) received(lease *coordinationv1.Lease) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.seen = lease.DeepCopy() // client-go writes into the one that it was given
	if holder := grantOf(lease).Holder; holder != "" && holder != r.identity {
		clear(r.attempts) // none of them can come true any more: the revision that each would replace is gone
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

type recorded struct {
	coordinationv1client.LeaseInterface
	recorder *Recorder
}

func (l recorded) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	lease, err := l.LeaseInterface.Get(ctx, name, o)
	return l.answer(lease, err)
}

func (l recorded) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l.recorder.sending(lease)
	created, err := l.LeaseInterface.Create(ctx, lease, o)
	return l.answer(created, err)
}

func (l recorded) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	l.recorder.sending(lease)
	updated, err := l.LeaseInterface.Update(ctx, lease, o)
	return l.answer(updated, err)
}

func (l recorded) answer(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		l.recorder.received(lease)
	}
	return lease, err
}
