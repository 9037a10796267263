package requests

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
)

// Reader reads the objects of a type without some fields, decoded. With a Client, these fields are never
// decoded, and a watch holds no buffer while it waits. With other clients, the objects are whole.
type Reader struct {
	resource   resource
	continuity *Continuity
	pacer      *Pacer
}

// NewReader returns a reader of the objects of a custom or built-in type, without the fields at some paths,
// such as spec.versions[*].schema.
func NewReader(client dynamic.Interface, restores *RestoreDetector, gvr schema.GroupVersionResource,
	unread []string) *Reader {
	var prune packed.Prune
	for _, text := range unread {
		path, _ := packed.ParsePath("." + text)
		prune.Paths = append(prune.Paths, path)
	}
	pruner, err := packed.NewPruner(prune)
	if err != nil {
		panic(err) // the paths are constants
	}
	r := &Reader{resource: newResource(client, gvr, "", ObjectOptions{Packer: packed.NewPacker(pruner)}, nil),
		pacer: NewPacer(false, false, NewRetrySignal())}
	if own, ok := client.(*Client); ok {
		r.pacer.watches = own.watches
	}
	r.continuity = restores.Continuity(VersionCounter(gvr, true), func(ctx context.Context) (string, error) {
		list, err := r.list(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return "", err
		}
		return list.GetResourceVersion(), nil
	})
	return r
}

// List lists the objects. It may change the options: see Continuity.BeforeList.
func (r *Reader) List(ctx context.Context,
	options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	r.continuity.BeforeList(&options)
	begun := time.Now()
	list, err := r.list(ctx, options)
	r.continuity.Failed(err)
	if err == nil {
		r.pacer.record(requestOutcome{verb: VerbList})
		r.pacer.listStored(false, time.Since(begun)) // the caller knows about changes
	}
	return list, err
}

func (r *Reader) list(ctx context.Context,
	options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	answer, err := r.resource.List(ctx, options, true)
	if err != nil {
		return nil, err
	}
	list, ok := answer.(*packed.List)
	if !ok {
		return answer.(*unstructured.UnstructuredList), nil
	}
	decoded := &unstructured.UnstructuredList{Items: make([]unstructured.Unstructured, len(list.Items))}
	decoded.SetResourceVersion(list.ResourceVersion)
	decoded.SetContinue(list.Continue)
	decoded.SetRemainingItemCount(list.RemainingItemCount)
	for k, item := range list.Items {
		object, err := item.Decode()
		if err != nil {
			return nil, err
		}
		decoded.Items[k] = *object
	}
	return decoded, nil
}

// Watch opens a watch, unless the server was restored from a backup since the last list. It retries nothing.
// If a proxy holds back watches, it returns an error without a reason when the next list is due: see
// ReasonOf.
func (r *Reader) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	l := &listWatch{
		resource: r.resource, continuity: r.continuity, reports: discardReporter{},
		pacer: r.pacer, limiter: NewListPool(1).NewLimiter(1, time.Now),
	}
	if l.pacer.polls() {
		return nil, l.awaitPoll(ctx)
	}
	isTrial := l.pacer.isTrial()
	options.TimeoutSeconds = trialTimeout(options.TimeoutSeconds, isTrial)
	o, err := l.open(ctx, VerbWatch, &options)
	if err != nil {
		o.end()
		if err == errNoAnswer && l.isHeldBack(ctx) {
			return nil, errPollDue
		}
		r.continuity.Failed(err)
		return nil, err
	}
	l.record(requestOutcome{verb: VerbWatch})
	o.isTrial = isTrial
	o.maxSilence = l.pacer.maxSilence(o.attempt, options.TimeoutSeconds)
	return newPipe(o.attempt, func(take func(watch.Event) bool) {
		defer l.endWatch(o)
		l.forward(o, func(event watch.Event) bool { return take(decoded(event)) })
	}), nil
}

// decoded returns an event with a decoded object.
func decoded(event watch.Event) watch.Event {
	object, ok := event.Object.(*packed.Object)
	if !ok {
		return event
	}
	u, err := object.Decode()
	if err != nil {
		return undecodableEvent(err)
	}
	event.Object = u
	return event
}

type discardReporter struct{}

func (discardReporter) RelistRequested()             {}
func (discardReporter) RequestStarted(Verb)          {}
func (discardReporter) RequestEnded(Verb, error)     {}
func (discardReporter) NoContact()                   {}
func (discardReporter) WatchOpened()                 {}
func (discardReporter) ListCompleted(time.Duration)  {}
func (discardReporter) Throttled(Verb)               {}
func (discardReporter) Remark(status.Reason, string) {}
func (discardReporter) RecordContact(bool)           {}
