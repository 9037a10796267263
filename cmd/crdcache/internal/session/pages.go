package session

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// chunkSize is how many objects are asked for at a time, as kubectl does.
const chunkSize = 500

// page is a part of a list.
type page struct {
	objects []unstructured.Unstructured
	next    string // the token of what comes after it; empty after the last
	err     error
}

// Pages lists the objects of the first type in pages, in the order of the server, all as they were at one moment. While
// one page is used the next one is read, and no more, so that a slow reader holds back the server. The first page may
// take as long as waiting lasts, any other one --timeout. After an error there is nothing; the requests end with ctx,
// and with the loop. Where ctx ends them before the last page, its cause is the error: what came is never taken for all.
func (t *Types) Pages(ctx, waiting context.Context, client dynamic.Interface) iter.Seq2[[]unstructured.Unstructured, error] {
	from := t.reader.inNamespace(client, t.Resources[0])
	return func(yield func([]unstructured.Unstructured, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		pages := make(chan page)
		go func() { // ended by the last page, an error or cancel
			defer close(pages)
			limited, done := waiting, context.CancelFunc(func() {})
			for next := ""; ; {
				read := t.reader.page(limited, from, next)
				done()
				select {
				case pages <- read:
				case <-reading.Done():
					return
				}
				if next = read.next; read.err != nil || next == "" {
					return
				}
				limited, done = t.reader.Target.Limit(reading)
			}
		}()
		for read := range pages {
			if !yield(read.objects, read.err) || read.err != nil || read.next == "" {
				return
			}
		}
		yield(nil, context.Cause(ctx)) // ctx has ended, and the goroutine chose to notice that
	}
}

// page lists one page.
func (r *Reader) page(ctx context.Context, from dynamic.ResourceInterface, next string) page {
	options := Selectors(r.cached)
	options.Limit, options.Continue = chunkSize, next
	list, err := from.List(ctx, options)
	if err != nil {
		return page{err: err}
	}
	for i := range list.Items {
		if err := r.transform(&list.Items[i]); err != nil {
			return page{err: err}
		}
	}
	return page{objects: list.Items, next: list.GetContinue()}
}

// inNamespace reads a type in the namespace that was asked for, if it has namespaces.
func (r *Reader) inNamespace(client dynamic.Interface, of discovery.Resource) dynamic.ResourceInterface {
	if r.Target.Namespace != "" && of.Scope == discovery.Namespaced {
		return client.Resource(of.GVR).Namespace(r.Target.Namespace)
	}
	return client.Resource(of.GVR)
}

// Printed returns a client whose lists bring objects with their rows as the server prints them.
func (t *Types) Printed() (*print.Printed, error) {
	return print.NewPrinted(t.reader.Target.Config, t.httpClient, t.Client)
}
