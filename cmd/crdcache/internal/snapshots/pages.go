package snapshots

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/requests"
)

// A page has minPageSize to maxPageSize objects and about pageBytes bytes. This bounds the memory of a save.
const (
	maxPageSize, minPageSize = 500, 10
	pageBytes                = 4 << 20
)

type listPage struct {
	version string // resource version of the whole list
	items   [][]byte
}

// pages lists a type until the first error. All pages have the same resource version. If the server cannot
// continue the list, the error is 410 Gone, and the caller must discard the received pages.
func (s *snapshotSaver) pages(ctx context.Context, resource discovery.Resource) iter.Seq2[listPage, error] {
	return func(yield func(listPage, error) bool) {
		name := resource.GVR.GroupResource().String()
		options := metav1.ListOptions{Limit: minPageSize}
		for version := ""; ; {
			var items []any
			var meta metav1.ListMeta
			pageCtx, cancel := s.target.WithTimeout(ctx)
			err := s.target.Retry(pageCtx, name, func() (err error) {
				items, meta, err = requests.ListPage(pageCtx, s.objects, resource.GVR,
					s.namespaceFor(resource), options, false)
				return err
			})
			cancel()
			if err == nil && version != "" && meta.ResourceVersion != version {
				err = apierrors.NewResourceExpired(
					fmt.Sprintf("the list of %s continued at another resource version", name))
			}
			version, options.Continue = meta.ResourceVersion, meta.Continue
			page, size := listPage{version: version}, 1
			for i := 0; i < len(items) && err == nil; i++ {
				var text []byte
				text, err = textOf(items[i])
				page.items = append(page.items, text)
				size += len(text)
			}
			if !yield(page, err) || err != nil || options.Continue == "" {
				return
			}
			options.Limit = int64(min(max(pageBytes*len(items)/size, minPageSize), maxPageSize))
		}
	}
}

// textOf returns the JSON of an object of a page.
func textOf(item any) (text []byte, err error) {
	if u, ok := item.(*unstructured.Unstructured); ok {
		return u.MarshalJSON()
	}
	err = item.(dynamicinformer.PackedObject).ReadJSON(func(json []byte) error {
		text = bytes.Clone(json)
		return nil
	})
	return text, err
}

func (s *snapshotSaver) namespaceFor(resource discovery.Resource) string {
	if resource.Scope == discovery.Namespaced {
		return s.namespace
	}
	return ""
}
