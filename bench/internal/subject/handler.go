package subject

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// readSink receives the handlers' results.
var readSink atomic.Int64

// handler returns the event handler of the options, or nil.
func (o Options) handler() cache.ResourceEventHandler {
	var see func(object any)
	switch o.Handler {
	case KeyHandler:
		see = func(object any) { o.seen(object) }
	case ReadHandler:
		see = func(object any) {
			readSink.Add(int64(readFields(object)))
			o.seen(object)
		}
	default:
		return nil
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, object any) { see(object) },
	}
}

func (o Options) seen(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		o.Seen(key)
	}
}
