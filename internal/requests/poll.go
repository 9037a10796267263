package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// errPollDue is returned in place of a watch when a type that is polled has to be listed.
var errPollDue = errors.New("lists replace watches, and the next one is due")

// Polls implements informer.InlineWatcher.
func (l *listWatch) Polls() bool { return l.polls.Load() }

// awaitPoll waits until the next list of a type that is polled, and returns errPollDue.
func (l *listWatch) awaitPoll(ctx context.Context) error {
	l.setPolls(true)
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	l.interruption.opened(cancel)
	defer l.interruption.closed()
	if err := l.pacer.awaitPoll(pause); err != nil && ctx.Err() != nil {
		return err
	}
	return errPollDue
}

// setPolls records whether lists replace watches, also in the status.
func (l *listWatch) setPolls(polls bool) {
	if l.polls.Swap(polls) == polls {
		return
	}
	message := ""
	if polls {
		poll := backoffs[stagePoll]
		message = fmt.Sprintf("%s: it is listed every %v to %v", l.pacer.pollText(), poll.first, poll.longest)
	}
	l.reports.Remark(status.ReasonPolled, message)
}

// ListStored implements informer.InlineWatcher.
func (l *listWatch) ListStored(changed bool) {
	if l.pacer.listStored(changed, time.Since(l.listStarted)) {
		l.reports.RequestEnded(VerbWatch, errMissedEvents)
	}
}

// ListReceived implements informer.InlineWatcher.
func (l *listWatch) ListReceived(incomplete error) {
	message := ""
	if incomplete != nil {
		message = incomplete.Error()
	}
	l.reports.Remark(status.ReasonRepeatedKeys, message)
}
