package requests

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

// Form says how the objects of a type are wanted.
type Form struct {
	// Packer packs them as they come, with a Client; nil: they are decoded.
	Packer *packed.Packer
	// Metadata asks the server for metadata alone, which takes a Packer.
	Metadata bool
}

// resource lists and watches a type, or one namespace of it. Lists are *packed.List or *unstructured.UnstructuredList,
// the objects of events *packed.Object or *unstructured.Unstructured. A non-object (a Status, a table) comes as
// the dynamic client has it.
type resource interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newResource returns the requests for gvr in a namespace or (empty) all. With a Client, objects are packed as they
// come, and the server is asked for metadata alone where no more is kept. What another client has decoded is packed by
// the store. Objects that are kept decoded are packed on the way where something is left out of them, which is cheaper
// than decoding it. Of a selection, nil being everything, packed objects that are not in it are left out as they come.
func newResource(from dynamic.Interface, gvr schema.GroupVersionResource, namespace string, form Form, selection *Selection) (resource, error) {
	decoded := dynamic.ResourceInterface(from.Resource(gvr))
	if namespace != "" {
		decoded = from.Resource(gvr).Namespace(namespace)
	}
	own, ok := from.(*Client)
	if !ok || form.Packer == nil {
		return decodedResource{decoded}, nil
	}
	if problems := rest.IsValidPathSegmentName(namespace); len(problems) > 0 {
		return nil, fmt.Errorf("invalid namespace %q: %v", namespace, problems)
	}
	if selection != nil {
		form.Packer = form.Packer.Selecting(selection.wants)
	}
	return own.packed(gvr, namespace, form), nil
}

// decodedResource has the requests of a dynamic client.
type decodedResource struct{ dynamic.ResourceInterface }

// List implements resource.
func (d decodedResource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := d.ResourceInterface.List(ctx, options)
	if err != nil {
		return nil, err // not the nil list in a non-nil interface
	}
	return list, nil
}

// failedResource has requests that cannot be made.
type failedResource struct{ err error }

// List implements resource.
func (f failedResource) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, f.err
}

// Watch implements resource.
func (f failedResource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, f.err
}

// What is asked for. A server that cannot leave out all but the metadata of a type sends whole objects.
const (
	wholeContent     = "application/json"
	metadataList     = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	metadataOfEvents = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// packed returns the requests for packed objects.
func (c *Client) packed(gvr schema.GroupVersionResource, namespace string, form Form) resource {
	whole := &packedResource{owner: c, gvr: gvr, namespace: namespace, lists: wholeContent, events: wholeContent, packer: form.Packer}
	if !form.Metadata {
		return whole
	}
	metadata := *whole
	metadata.lists, metadata.events = metadataList, metadataOfEvents
	return &metadataResource{metadata: &metadata, whole: whole}
}

// packing returns a REST client that asks for content, and packs the objects of watches.
func (c *Client) packing(content string, packer *packed.Packer, feed *codec.Feed) (*rest.RESTClient, error) {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, content
	config.NegotiatedSerializer = codec.WrapPacked(config.NegotiatedSerializer, packer, feed)
	return c.rest(config)
}

// metadataResource asks for metadata alone, and for whole objects once the server has refused (406), which it may although
// it has the choice. The store leaves out the rest then.
type metadataResource struct {
	metadata, whole *packedResource
	refused         atomic.Bool
}

// List implements resource.
func (m *metadataResource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return ask(m, func(r *packedResource) (runtime.Object, error) { return r.List(ctx, options) })
}

// Watch implements resource.
func (m *metadataResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return ask(m, func(r *packedResource) (watch.Interface, error) { return r.Watch(ctx, options) })
}

// ListUnthrottled implements inlineResource.
func (m *metadataResource) ListUnthrottled(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return ask(m, func(r *packedResource) (runtime.Object, error) { return r.ListUnthrottled(ctx, options) })
}

// Events implements inlineResource.
func (m *metadataResource) Events(ctx context.Context, options metav1.ListOptions) (*codec.Events, error) {
	return ask(m, func(r *packedResource) (*codec.Events, error) { return r.Events(ctx, options) })
}

func ask[T any](m *metadataResource, request func(*packedResource) (T, error)) (T, error) {
	if !m.refused.Load() {
		answer, err := request(m.metadata)
		if !apierrors.IsNotAcceptable(err) {
			return answer, err
		}
		m.refused.Store(true)
	}
	return request(m.whole)
}

// apiPath is the path of a type on API servers.
func apiPath(gvr schema.GroupVersionResource, namespace string) []string {
	path := []string{"api"}
	if gvr.Group != "" {
		path = []string{"apis", gvr.Group}
	}
	path = append(path, gvr.Version)
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, gvr.Resource)
}

// packedResource packs objects from the bytes of responses.
type packedResource struct {
	owner     *Client
	gvr       schema.GroupVersionResource
	namespace string
	// lists and events are what lists and watches ask for.
	lists, events string
	packer        *packed.Packer
}

// request returns a request for content. The client does not repeat it: the Pacer decides on that.
func (r *packedResource) request(client *rest.RESTClient, content string, options *metav1.ListOptions) *rest.Request {
	return client.Get().AbsPath(apiPath(r.gvr, r.namespace)...).SetHeader("Accept", content).MaxRetries(0).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// List implements resource. It packs each item as it comes, so that the whole response is never in memory.
func (r *packedResource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return r.list(ctx, options, r.request(r.owner.stock, r.lists, &options))
}

// ListUnthrottled implements inlineResource.
func (r *packedResource) ListUnthrottled(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return r.list(ctx, options, r.request(r.owner.stock, r.lists, &options).Throttle(nil))
}

func (r *packedResource) list(ctx context.Context, options metav1.ListOptions, request *rest.Request) (runtime.Object, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	list, err := codec.ReadList(body, r.packer)
	switch {
	case errors.Is(err, codec.ErrUnusual):
		return r.decoded(ctx, options)
	case err != nil:
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	return list, nil
}

// decoded lists what is not of the usual form.
func (r *packedResource) decoded(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	client, err := r.owner.packing(r.lists, r.packer, nil)
	if err != nil {
		return nil, err
	}
	decoded := dynamic.ResourceInterface(dynamic.New(client).Resource(r.gvr))
	if r.namespace != "" {
		decoded = dynamic.New(client).Resource(r.gvr).Namespace(r.namespace)
	}
	return decodedResource{decoded}.List(ctx, options)
}

// Watch implements resource. The watch has batches.
func (r *packedResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	feed := codec.NewFeed()
	client, err := r.owner.packing(r.events, r.packer, feed)
	if err != nil {
		return nil, err
	}
	options.Watch = true
	w, err := r.request(client, r.events, &options).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return feed.Of(w), nil
}

// Events implements inlineResource. Like client-go's watches it is not limited in rate.
func (r *packedResource) Events(ctx context.Context, options metav1.ListOptions) (*codec.Events, error) {
	options.Watch = true
	body, err := r.request(r.owner.stock, r.events, &options).SetHeader(acceptEncodingHeader, identity).Throttle(nil).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return codec.NewEvents(body, r.owner.config.NegotiatedSerializer, r.packer)
}
