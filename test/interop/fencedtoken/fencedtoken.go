// Package fencedtoken reads the fencing token that kilit mints on a Lease labelled kilit.dev/fenced=true.
//
// A program must use only a token that was minted for its own grant. A leader that was paused and wakes up may read the
// Lease when another has it already: with that token it would pass every guard as if it were the other. So a token is
// taken only from an object whose holder and acquireTime are the program's own, and that says that the token was minted
// for this acquireTime.
//
// client-go does not tell a program the acquireTime that it wrote, nor show it the Lease. Record listens to what client-go
// sends and receives; the elector itself stays as it is:
//
//	recorder := fencedtoken.Record(clientset.CoordinationV1(), identity)
//	lock := &resourcelock.LeaseLock{Client: recorder, Labels: fencedtoken.Labels(), ...}
//	...
//	OnStartedLeading: func(ctx context.Context) {
//		token, err := recorder.Wait(ctx) // once for each term; then hand it to everything that writes
//
// Not promised: that the program still leads. The guard tells, by the token.
package fencedtoken

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// Label has a Lease fenced, with the value "true".
	Label = "kilit.dev/fenced"
	// TokenAnnotation holds the token, "0" before the first.
	TokenAnnotation = "kilit.dev/fencing-token"
	// AcquireTimeAnnotation holds the acquireTime of the holder that the token was minted for.
	AcquireTimeAnnotation = "kilit.dev/fenced-acquire-time"
)

var (
	// ErrNotHolder: the Lease is not, or no longer, held by this grant. Let the process exit.
	ErrNotHolder = errors.New("NotHolder")
	// ErrNotMinted: the grant has no token yet. A Lease that was created held gets one at its first renewal; if it stays
	// so, the Lease lacks its label, or the chart was installed without fencedLeases.enabled.
	ErrNotMinted = errors.New("NotMinted")
)

// Token is a fencing token: from 1 to 10^18 - 1. It is exact in an int64 and in a PostgreSQL bigint, not in a float64.
type Token int64

func (t Token) String() string { return strconv.FormatInt(int64(t), 10) }

// Grant is what tells one term of a leader from every other.
type Grant struct {
	Holder string
	// AcquireTime as the holder wrote it; the API server keeps microseconds.
	AcquireTime time.Time
}

// Labels of a Lease to be fenced.
func Labels() map[string]string { return map[string]string{Label: "true"} }

var decimal = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)

// Of returns the token that a Lease carries for this grant, or ErrNotHolder or ErrNotMinted.
func Of(lease *coordinationv1.Lease, own Grant) (Token, error) {
	name := lease.Namespace + "/" + lease.Name
	held := grantOf(lease)
	if held.Holder == "" || held.Holder != own.Holder {
		return 0, fmt.Errorf("[%w] Lease %s is held by %q, not by %q. This process is not the leader; let it exit",
			ErrNotHolder, name, held.Holder, own.Holder)
	}
	if !sameTime(held.AcquireTime, own.AcquireTime) {
		return 0, fmt.Errorf("[%w] Lease %s was acquired by %q at %s, not at %s: in another term, or by another process of "+
			"this name. Give each process an identity of its own", ErrNotHolder, name, held.Holder, text(held), text(own))
	}
	annotation := lease.Annotations[TokenAnnotation]
	mintedFor := lease.Annotations[AcquireTimeAnnotation]
	if !decimal.MatchString(annotation) {
		return 0, fmt.Errorf("[%w] Lease %s has no fencing token yet (%q): it comes with the next renewal. If it does not, "+
			"label the Lease %s=true and install kilit with fencedLeases.enabled", ErrNotMinted, name, annotation, Label)
	}
	at, err := time.Parse(time.RFC3339Nano, mintedFor)
	if err != nil || !sameTime(at, own.AcquireTime) {
		return 0, fmt.Errorf("[%w] Lease %s: its token %s was minted for a term that began at %q, not at %s. Install kilit with "+
			"fencedLeases.enabled: nobody minted one for this term", ErrNotMinted, name, annotation, mintedFor, text(own))
	}
	token, err := strconv.ParseInt(annotation, 10, 64)
	return Token(token), err
}

func grantOf(lease *coordinationv1.Lease) Grant {
	var grant Grant
	if lease.Spec.HolderIdentity != nil {
		grant.Holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.AcquireTime != nil {
		grant.AcquireTime = lease.Spec.AcquireTime.Time
	}
	return grant
}

// sameTime compares as the API server keeps times. The zero time is nobody's.
func sameTime(a, b time.Time) bool {
	return !a.IsZero() && a.UnixMicro() == b.UnixMicro()
}

func text(grant Grant) string { return grant.AcquireTime.UTC().Format("2006-01-02T15:04:05.000000Z") }
