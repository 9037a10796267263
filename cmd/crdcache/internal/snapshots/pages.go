package snapshots

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// A page has minPageSize to maxPageSize objects and about pageBytes bytes. This bounds the memory of a save.
const (
	maxPageSize, minPageSize = 500, 10
	pageBytes                = 4 << 20
)

// saveObjects lists a type, and returns the resource version of all pages. If the server cannot continue the
// list, the error is 410 Gone, and the caller must discard the section.
func (s *snapshotSaver) saveObjects(ctx context.Context, resource discovery.Resource,
	section *snapshot.TypeWriter) (version string, err error) {
	gr, namespace := resource.GVR.GroupResource(), ""
	if resource.Scope == discovery.Namespaced {
		namespace = s.namespace
	}
	options := metav1.ListOptions{Limit: minPageSize}
	for {
		var items []any
		var meta metav1.ListMeta
		pageCtx, cancel := s.target.WithTimeout(ctx)
		err := s.target.Retry(pageCtx, gr.String(), func() (err error) {
			items, meta, err = requests.ListPage(pageCtx, s.objects, resource.GVR, namespace, options, false)
			return err
		})
		cancel()
		if err == nil && version != "" && meta.ResourceVersion != version {
			err = apierrors.NewResourceExpired(
				fmt.Sprintf("the list of %s continued at another resource version", gr))
		}
		if err != nil {
			return "", err
		}
		size := 1
		for _, item := range items {
			text, err := textOf(item)
			if err == nil {
				size += len(text)
				text, err = s.redactor.redact(gr, text)
			}
			if err != nil {
				return "", err
			}
			if err := section.Add(text); err != nil {
				return "", s.writeError(err)
			}
		}
		if version, options.Continue = meta.ResourceVersion, meta.Continue; meta.Continue == "" {
			return version, nil
		}
		options.Limit = int64(min(max(pageBytes*len(items)/size, minPageSize), maxPageSize))
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
