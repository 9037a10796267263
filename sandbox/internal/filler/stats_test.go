package filler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChurnStats(t *testing.T) {
	stats := newChurnStats()
	for i := range 100 {
		stats.count(opUpdate, time.Duration(100-i)*time.Millisecond, nil)
	}
	stats.count(opCreate, 50*time.Millisecond, nil)
	stats.count(opDelete, 50*time.Millisecond, nil)
	stats.count(opMissed, 50*time.Millisecond, nil)
	failure := errors.New("first")
	stats.count(opDelete, time.Hour, failure)
	stats.count(opDelete, time.Hour, errors.New("second"))

	want := ChurnResult{
		Updates: 100, Creates: 1, Deletes: 1, Missed: 1, Errors: 2, FirstError: failure,
		Elapsed: time.Second, P50: 50 * time.Millisecond, P99: 98 * time.Millisecond,
	}
	if diff := cmp.Diff(want, stats.result(time.Second), cmpopts.EquateErrors()); diff != "" {
		t.Error(diff)
	}
	if got := (ChurnResult{Elapsed: time.Second}).String(); got == "" {
		t.Error("an empty run has no summary")
	}
}
