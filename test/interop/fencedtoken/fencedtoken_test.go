package fencedtoken

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	acquired = time.Date(2026, 12, 1, 5, 0, 0, 120_000_000, time.UTC)
	later    = acquired.Add(time.Minute)
)

func aLease(holder string, at time.Time, annotations map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Annotations: annotations},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: &metav1.MicroTime{Time: at}},
	}
}

func minted(token, mintedFor string) map[string]string {
	return map[string]string{TokenAnnotation: token, AcquireTimeAnnotation: mintedFor}
}

func TestOf(t *testing.T) {
	good := minted("4711", "2026-12-01T05:00:00.120000Z")
	own := Grant{Holder: "a", AcquireTime: acquired}
	for name, test := range map[string]struct {
		lease     *coordinationv1.Lease
		own       Grant
		want      Token
		wantError error
	}{
		"its own":                                 {aLease("a", acquired, good), own, 4711, nil},
		"its own, with nanoseconds in memory":     {aLease("a", acquired, good), Grant{"a", acquired.Add(999)}, 4711, nil},
		"a time written without zeros":            {aLease("a", acquired, minted("4711", "2026-12-01T05:00:00.12Z")), own, 4711, nil},
		"the greatest":                            {aLease("a", acquired, minted("999999999999999999", good[AcquireTimeAnnotation])), own, 999999999999999999, nil},
		"another holder's":                        {aLease("b", acquired, good), own, 0, ErrNotHolder},
		"nobody's":                                {aLease("", acquired, good), own, 0, ErrNotHolder},
		"nobody's, for an identity that is empty": {aLease("", acquired, good), Grant{"", acquired}, 0, ErrNotHolder},
		"of another term":                         {aLease("a", later, minted("4711", "2026-12-01T05:01:00.120000Z")), own, 0, ErrNotHolder},
		"without times":                           {aLease("a", time.Time{}, good), Grant{"a", time.Time{}}, 0, ErrNotHolder},
		"created and not renewed yet":             {aLease("a", acquired, minted("0", "")), own, 0, ErrNotMinted},
		"never minted":                            {aLease("a", acquired, nil), own, 0, ErrNotMinted},
		"minted for a former holder":              {aLease("a", acquired, minted("4711", "2026-12-01T04:00:00.000000Z")), own, 0, ErrNotMinted},
		"without the time it was minted for":      {aLease("a", acquired, map[string]string{TokenAnnotation: "4711"}), own, 0, ErrNotMinted},
		"with a zero in front":                    {aLease("a", acquired, minted("04711", good[AcquireTimeAnnotation])), own, 0, ErrNotMinted},
		"too long":                                {aLease("a", acquired, minted("1000000000000000000", good[AcquireTimeAnnotation])), own, 0, ErrNotMinted},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := Of(test.lease, test.own)
			if token != test.want || !errors.Is(err, test.wantError) {
				t.Errorf("got %d, %v; want %d, %v", token, err, test.want, test.wantError)
			}
		})
	}
}

// Each step is what client-go would send or receive; then the token or the error that is wanted.
func TestRecorder(t *testing.T) {
	const first, second = "2026-12-01T05:00:00.120000Z", "2026-12-01T05:01:00.120000Z"
	type step struct {
		sends, receives *coordinationv1.Lease
		want            Token
		wantError       error
	}
	for name, steps := range map[string][]step{
		"a Lease that it creates has its token at the first renewal": {
			{sends: aLease("a", acquired, nil), receives: aLease("a", acquired, minted("0", "")), wantError: ErrNotMinted},
			{sends: aLease("a", acquired, minted("0", "")), receives: aLease("a", acquired, minted("7", first)), want: 7},
		},
		"a takeover has its token at once, and keeps it": {
			{receives: aLease("b", acquired, minted("7", first)), wantError: ErrNotHolder},
			{sends: aLease("a", later, minted("7", first)), receives: aLease("a", later, minted("9", second)), want: 9},
			{sends: aLease("a", later, minted("9", second)), receives: aLease("a", later, minted("9", second)), want: 9},
		},
		"a loser never gets the winner's": {
			{sends: aLease("a", acquired, nil), receives: aLease("a", acquired, minted("7", first)), want: 7},
			{sends: aLease("a", acquired, nil), want: 7}, // refused: conflict
			{receives: aLease("b", later, minted("9", second)), wantError: ErrNotHolder},
		},
		"an acquisition whose answer got lost counts when it is seen": {
			{receives: aLease("b", acquired, minted("7", first)), wantError: ErrNotHolder},
			{sends: aLease("a", later, minted("7", first)), wantError: ErrNotHolder},
			{receives: aLease("a", later, minted("9", second)), want: 9},
		},
		"a restarted process does not adopt the token of its predecessor of the same name": {
			{receives: aLease("a", acquired, minted("7", first)), wantError: ErrNotHolder},
			{sends: aLease("a", acquired, minted("7", first)), receives: aLease("a", acquired, minted("7", first)), wantError: ErrNotHolder},
		},
		"a namesake's is not its own": {
			{sends: aLease("a", acquired, nil), receives: aLease("a", acquired, minted("7", first)), want: 7},
			{receives: aLease("a", later, minted("9", second)), wantError: ErrNotHolder},
		},
		"nothing is taken when nobody mints any more": {
			{receives: aLease("b", acquired, minted("7", first)), wantError: ErrNotHolder},
			{sends: aLease("a", later, minted("7", first)), receives: aLease("a", later, minted("7", first)), wantError: ErrNotMinted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := Record(nil, "a")
			for i, step := range steps {
				if step.sends != nil {
					recorder.sending(step.sends)
				}
				if step.receives != nil {
					recorder.received(step.receives)
				}
				token, err := recorder.Token()
				if token != step.want || !errors.Is(err, step.wantError) {
					t.Fatalf("step %d: got %d, %v; want %d, %v", i, token, err, step.want, step.wantError)
				}
			}
		})
	}
}

func TestWaitEndsWithItsContextAndSaysWhy(t *testing.T) {
	recorder := Record(nil, "a")
	recorder.sending(aLease("a", acquired, nil))
	recorder.received(aLease("a", acquired, minted("0", "")))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := recorder.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotMinted) {
		t.Errorf("got %v", err)
	}
}

func TestWaitReturnsTheTokenOfTheFirstRenewal(t *testing.T) {
	recorder := Record(nil, "a")
	recorder.sending(aLease("a", acquired, nil))
	recorder.received(aLease("a", acquired, minted("0", "")))
	go recorder.received(aLease("a", acquired, minted("7", "2026-12-01T05:00:00.120000Z")))
	if token, err := recorder.Wait(t.Context()); token != 7 || err != nil {
		t.Errorf("got %d, %v", token, err)
	}
}

func TestWaitDoesNotWaitForAGrantOfAnother(t *testing.T) {
	recorder := Record(nil, "a")
	recorder.received(aLease("a", acquired, minted("7", "2026-12-01T05:00:00.120000Z")))
	if _, err := recorder.Wait(t.Context()); !errors.Is(err, ErrNotHolder) {
		t.Errorf("got %v", err)
	}
}
