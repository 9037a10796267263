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

func (l *listWatch) Polls() bool { return l.pacer.pollText() != "" }

// awaitPoll waits until the next list of a type that is polled, and returns errPollDue.
func (l *listWatch) awaitPoll(ctx context.Context) error {
	l.remarkPolls()
	pause, cancel := context.WithCancel(ctx)
	defer cancel()
	l.interruption.opened(cancel)
	defer l.interruption.closed()
	if err := l.pacer.awaitPoll(pause); err != nil && ctx.Err() != nil {
		return err
	}
	return errPollDue
}

// remarkPolls records in the status whether lists replace watches.
func (l *listWatch) remarkPolls() {
	message := l.pacer.pollText()
	if poll := backoffs[stagePoll]; message != "" {
		message = fmt.Sprintf("%s: it is listed every %v to %v", message, poll.first, poll.longest)
	}
	l.reports.Remark(status.ReasonPolled, message)
}

func (l *listWatch) ListStored(changed bool) {
	if l.pacer.listStored(changed, time.Since(l.listStarted)) {
		l.reports.RequestEnded(VerbWatch, errMissedEvents)
	}
}

func (l *listWatch) ListReceived(incomplete error) {
	message := ""
	if incomplete != nil {
		message = incomplete.Error()
	}
	l.reports.Remark(status.ReasonRepeatedKeys, message)
}
