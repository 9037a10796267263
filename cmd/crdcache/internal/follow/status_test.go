package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/expression"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newStatus(state status.State, reason status.Reason, message string) status.Status {
	return status.Status{GVR: widgets, State: state, Reason: reason, Message: message}
}

// TestStatusReporter verifies that only unusual states are reported, and pending states after a delay.
func TestStatusReporter(t *testing.T) {
	const waits = "waits for it"
	none := status.Status{GVR: widgets}
	pending := newStatus(status.Pending, status.ReasonTypesUnknown, waits)
	absent := newStatus(status.Pending, status.ReasonNotInstalled, waits)
	syncing := newStatus(status.Syncing, "", "")
	synced := newStatus(status.Synced, "", "")
	degraded := newStatus(status.Degraded, status.ReasonForbidden, "no\x1b right")
	gone := newStatus(status.Gone, status.ReasonNotInstalled, "no longer there")
	const name = "widgets.example.com: "
	tests := map[string]struct {
		states []status.Status
		begun  bool
		pause  time.Duration
		want   string
	}{
		"nothing special": {states: []status.Status{none, pending, syncing, synced}, pause: statusDelay / 4},
		"a long wait": {states: []status.Status{none, pending, syncing, synced}, pause: statusDelay + 1,
			want: name + "Pending: " + waits + "\n"},
		"no such type": {states: []status.Status{none, absent}, pause: 2 * statusDelay},
		"trouble and recovery": {states: []status.Status{none, syncing, degraded, synced},
			want: name + "Degraded: no� right\n" + name + "Synced\n"},
		"reported once": {states: []status.Status{none, syncing, degraded, degraded},
			want: name + "Degraded: no� right\n"},
		"gone and back": {states: []status.Status{none, synced, gone, absent, syncing, synced},
			want: name + "Gone: no longer there\n" + name + "Synced\n"},
		"a new type": {states: []status.Status{none, syncing, synced}, begun: true, want: name + "Synced\n"},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			t.Setenv("LC_ALL", "C.UTF-8")
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				reporter := newStatusReporter(&out)
				if tt.begun {
					reporter.markSynced()
				}
				for i, after := range tt.states[1:] {
					reporter.stateChanged(tt.states[i], after)
					time.Sleep(tt.pause) // on the virtual clock
					synctest.Wait()
				}
				reporter.end()
				reporter.stateChanged(synced, degraded)
				time.Sleep(2 * statusDelay)
				synctest.Wait()
				if out.String() != tt.want {
					t.Errorf("printed\n%swant\n%s", out.String(), tt.want)
				}
			})
		})
	}
}

func withRow(version, color, age string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":         map[string]any{"color": color},
		print.RowField: map[string]any{"cells": []any{"a", color, age}},
	}}
	u.SetResourceVersion(version)
	return u
}

// TestUnchanged verifies that events in which only the row changed are ignored.
func TestUnchanged(t *testing.T) {
	before := withRow("5", "red", "3s")
	for name, tt := range map[string]struct {
		event query.Event
		want  bool
	}{
		"older": {query.Event{Type: query.Modified, Old: before, Object: withRow("5", "red", "4s")}, true},
		"without a row": {query.Event{Type: query.Modified, Old: before,
			Object: &unstructured.Unstructured{Object: withoutRow(before.Object)}}, true},
		"written": {query.Event{Type: query.Modified, Old: before,
			Object: withRow("6", "red", "3s")}, false},
		"another default": {query.Event{Type: query.Modified, Old: before,
			Object: withRow("5", "blue", "3s")}, false},
		"nothing known before": {query.Event{Type: query.Modified, Object: before}, false},
		"began to match":       {query.Event{Type: query.Added, Old: before, Object: before}, false},
		"gone":                 {query.Event{Type: query.Deleted, Old: before, Object: before, Gone: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUnchanged(tt.event); got != tt.want {
				t.Errorf("isUnchanged() = %v, want %v", got, tt.want)
			}
			if _, ok := before.Object[print.RowField]; !ok {
				t.Error("isUnchanged removed the row of its argument")
			}
		})
	}
}

// failingExpression is an expression that fails on each object.
type failingExpression struct{ expression.Expression }

func (failingExpression) Eval(context.Context, map[string]any) (any, error) {
	return nil, errors.New("cost limit exceeded")
}

func (failingExpression) String() string { return "costly" }

// TestFailedConditions verifies that a watch warns about the first objects on which a condition fails.
func TestFailedConditions(t *testing.T) {
	expression.SetCompiler(func(string) (expression.Expression, error) { return failingExpression{}, nil })
	matcher, err := query.NewMatcher(query.WhereCEL("costly"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	f := Options{}.newFeed(nil, nil, matcher)
	f.warn = func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	for n := range maxFailureWarnings + 2 {
		u := withRow("5", "red", "3s")
		u.SetName(fmt.Sprint("o", n))
		f.events.OnAdd(u, true)
		if n < maxFailureWarnings {
			want = append(want, fmt.Sprintf("warning: not shown: costly fails on o%d: cost limit exceeded", n))
		}
	}
	last := got[len(got)-1]
	if diff := cmp.Diff(want, got[:len(got)-1]); diff != "" || !strings.Contains(last, "further failures") {
		t.Errorf("the last warning is %q, want one about further failures; the others (-want +got):\n%s", last, diff)
	}
}

// blockingWriter is a writer that sends its data and blocks until unblock is closed.
type blockingWriter struct {
	writing chan string
	unblock chan struct{}
}

func (s blockingWriter) Write(p []byte) (int, error) {
	s.writing <- string(p)
	<-s.unblock
	return len(p), nil
}

// TestScreenEnds verifies that stopOutput waits for the current line, and nothing is printed after it.
func TestScreenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := blockingWriter{make(chan string, 2), make(chan struct{})}
		s := &screen{stdout: newStdout(out, false)}
		line := func() {
			s.withLock(func() {
				s.printIfOpen(func() error { _, err := io.WriteString(s, "a line\n"); return err })
				s.writeBuffer()
			})
		}
		go line() // ends with the write
		<-out.writing
		ended := make(chan struct{})
		go func() { s.stopOutput(); close(ended) }() // ends with the write
		synctest.Wait()
		select {
		case <-ended:
			t.Fatal("stopOutput returned in the middle of a line")
		default:
		}
		close(out.unblock)
		<-ended
		line()
		if len(out.writing) > 0 {
			t.Errorf("%q was written after stopOutput returned", <-out.writing)
		}
	})
}

// TestScreenInColor verifies that control characters of objects are replaced, and the command's own colors
// kept.
func TestScreenInColor(t *testing.T) {
	var out strings.Builder
	s := &screen{stdout: newStdout(&out, true)}
	s.printIfOpen(func() error {
		s.text.WriteString("\x1b[32m")
		_, err := io.WriteString(s, "a\x1b[31m\n")
		return err
	})
	s.writeBuffer()
	if got := out.String(); strings.Count(got, "\x1b") != 1 || !strings.HasPrefix(got, "\x1b[32ma") ||
		!strings.HasSuffix(got, "[31m\n") {
		t.Errorf("wrote %q, want only the command's own color", got)
	}
}
