package follow

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/serving/readapi"
)

// statusDelay is the time before a pending state is reported.
const statusDelay = 2 * time.Second

// statusReporter writes unusual states of types to stderr, such as long pending, failed, recovered, removed
// and installed. It is safe for concurrent use.
type statusReporter struct {
	out io.Writer

	mu struct {
		sync.Mutex
		initialSyncDone bool
		reportNextSync  map[schema.GroupVersionResource]bool
		delayedMessages map[schema.GroupVersionResource]*time.Timer
		// falseConditions counts the factories for which a condition is false. reasons has the latest
		// message of each condition. reportedFalse has the conditions whose latest message was lostText.
		falseConditions map[status.ConditionType]int
		reasons         map[status.ConditionType]string
		reportedFalse   map[status.ConditionType]bool
		ended           bool
	}
}

func newStatusReporter(out io.Writer) *statusReporter {
	reporter := &statusReporter{out: out}
	reporter.mu.reportNextSync = map[schema.GroupVersionResource]bool{}
	reporter.mu.delayedMessages = map[schema.GroupVersionResource]*time.Timer{}
	reporter.mu.falseConditions = map[status.ConditionType]int{}
	reporter.mu.reasons = map[status.ConditionType]string{}
	reporter.mu.reportedFalse = map[status.ConditionType]bool{}
	return reporter
}

func (t *statusReporter) markSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.initialSyncDone = true
	for conditionType := range connectionTexts {
		t.reportConnectionLocked(conditionType)
	}
}

func (t *statusReporter) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.ended = true
	for _, timer := range t.mu.delayedMessages {
		timer.Stop()
	}
}

func (t *statusReporter) printLine(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.printLineLocked(format, args...)
}

func (t *statusReporter) printLineLocked(format string, args ...any) {
	if !t.mu.ended {
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

func (t *statusReporter) stateChanged(before, after status.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gvr := after.GVR
	if after.State == before.State && after.Reason == before.Reason {
		return
	}
	if timer := t.mu.delayedMessages[gvr]; timer != nil {
		timer.Stop()
		delete(t.mu.delayedMessages, gvr)
	}
	if before.State == "" && t.mu.initialSyncDone {
		t.mu.reportNextSync[gvr] = true
	}
	switch after.State {
	case status.Pending:
		// A deletion was reported as Gone, and a missing type is not an unusual state.
		if (after.Reason != status.ReasonNotInstalled || after.Suspended) && after.Message != "" {
			t.mu.delayedMessages[gvr] = time.AfterFunc(statusDelay,
				func() { t.printLine("%s", describeStatus(after)) })
		}
	case status.Degraded, status.Gone:
		t.mu.reportNextSync[gvr] = true
		t.printLineLocked("%s", describeStatus(after))
	case status.Synced:
		if t.mu.reportNextSync[gvr] || after.Reason == status.ReasonPolled ||
			after.Reason == status.ReasonRepeatedKeys {
			t.printLineLocked("%s", describeStatus(after))
		}
		delete(t.mu.reportNextSync, gvr)
	}
}

// connectionTexts are the messages for conditions that do not change the states of types.
var connectionTexts = map[status.ConditionType]struct{ lostText, restoredText string }{
	status.ConditionReachable: {"the API server does not respond, changes are not shown",
		"the API server responds again"},
	status.ConditionAuthenticated: {
		"the API server rejects the credentials, changes are not shown",
		"the API server accepts the credentials again"},
}

// conditionChanged reports a condition of a factory. Before markSynced it prints nothing, because the error
// of the command has the cause.
func (t *statusReporter) conditionChanged(before, after status.Condition) {
	_, hasText := connectionTexts[after.Type]
	wasFalse, isFalse := before.Status == metav1.ConditionFalse, after.Status == metav1.ConditionFalse
	if !hasText || wasFalse == isFalse {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if isFalse {
		t.mu.falseConditions[after.Type]++
		t.mu.reasons[after.Type] = print.Printable(after.Message)
	} else {
		t.mu.falseConditions[after.Type]--
	}
	t.reportConnectionLocked(after.Type)
}

func (t *statusReporter) reportConnectionLocked(conditionType status.ConditionType) {
	isFalse := t.mu.falseConditions[conditionType] > 0
	if !t.mu.initialSyncDone || isFalse == t.mu.reportedFalse[conditionType] {
		return
	}
	t.mu.reportedFalse[conditionType] = isFalse
	if isFalse {
		t.printLineLocked("warning: %s: %s", connectionTexts[conditionType].lostText,
			t.mu.reasons[conditionType])
	} else {
		t.printLineLocked("%s", connectionTexts[conditionType].restoredText)
	}
}

func describeStatus(s status.Status) string {
	text := fmt.Sprintf("%s: %s", s.GVR.GroupResource(), s.State)
	if s.Message != "" {
		text += ": " + print.Printable(s.Message)
	}
	return text
}

// unwatchableTypes detects types that the server lists but refuses to watch. Their informers retry, so that
// the command would run without printing a change. It is safe for concurrent use.
type unwatchableTypes struct {
	detected chan struct{}

	mu struct {
		sync.Mutex
		listed, watched map[schema.GroupVersionResource]bool
		watchErrs       map[schema.GroupVersionResource]error
	}
}

func newUnwatchableTypes() *unwatchableTypes {
	w := &unwatchableTypes{detected: make(chan struct{}, 1)}
	w.mu.listed, w.mu.watched = map[schema.GroupVersionResource]bool{}, map[schema.GroupVersionResource]bool{}
	w.mu.watchErrs = map[schema.GroupVersionResource]error{}
	return w
}

// wrap records successful lists and watches of a client.
func (w *unwatchableTypes) wrap(client *http.Client, basePath string) *http.Client {
	wrapped := *client
	next := cmp.Or(client.Transport, http.DefaultTransport)
	wrapped.Transport = session.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			w.recordSuccess(r, basePath)
		}
		return response, err
	})
	return &wrapped
}

func (w *unwatchableTypes) recordSuccess(r *http.Request, basePath string) {
	relative := *r
	relative.URL = &url.URL{Path: strings.TrimPrefix(r.URL.Path, basePath), RawQuery: r.URL.RawQuery}
	request, _ := readapi.ParseRequest(&relative)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch request.Verb {
	case "watch", "watch-list":
		w.mu.watched[request.GVR] = true
		delete(w.mu.watchErrs, request.GVR)
	case "list":
		w.mu.listed[request.GVR] = true
	}
}

// stateChanged handles a status change and reports whether it means that the type cannot be watched.
func (w *unwatchableTypes) stateChanged(after status.Status) bool {
	if after.State != status.Degraded ||
		after.Reason != status.ReasonForbidden && after.Reason != status.ReasonVerbUnsupported {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.listed[after.GVR] || w.mu.watched[after.GVR] {
		return false
	}
	cause := cmp.Or(after.LastError, errors.New(after.Message))
	w.mu.watchErrs[after.GVR] = fmt.Errorf(
		"%s can be listed but not watched, so changes cannot be shown; use dump to print the objects: %w",
		after.GVR.GroupResource(), cause)
	queue.Wake(w.detected)
	return true
}

// err joins the errors of the types if all are unwatchable. Otherwise it returns nil.
func (w *unwatchableTypes) err(types []schema.GroupVersionResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, gvr := range types {
		if w.mu.watchErrs[gvr] == nil {
			return nil
		}
		errs = append(errs, w.mu.watchErrs[gvr])
	}
	return errors.Join(errs...)
}
