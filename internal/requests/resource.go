package requests

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
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
// the objects of events *packed.Object or *unstructured.Unstructured. What is no object (a Status, a table) comes as
// the dynamic client has it.
type resource interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newResource returns the requests for gvr in a namespace or (empty) all. With a Client, objects are packed as they
// come, and the server is asked for metadata alone where no more is kept. What another client has decoded is packed by
// the store. Objects that are kept decoded are packed on the way where something is left out of them, which is cheaper
// than decoding it.
func newResource(from dynamic.Interface, gvr schema.GroupVersionResource, namespace string, form Form) (resource, error) {
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
	return own.packed(gvr, namespace, form)
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

// metadataContent asks the server for the metadata of objects alone.
const metadataContent = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// packed returns the requests for packed objects.
func (c *Client) packed(gvr schema.GroupVersionResource, namespace string, form Form) (resource, error) {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if form.Metadata {
		config.AcceptContentTypes = metadataContent
	}
	packing := func(feed *codec.Feed) (*rest.RESTClient, error) {
		config := rest.CopyConfig(config)
		config.NegotiatedSerializer = codec.WrapPacked(config.NegotiatedSerializer, form.Packer, feed)
		return c.rest(config)
	}
	client, err := packing(nil)
	if err != nil {
		return nil, err
	}
	decoded := dynamic.ResourceInterface(dynamic.New(client).Resource(gvr))
	if namespace != "" {
		decoded = dynamic.New(client).Resource(gvr).Namespace(namespace)
	}
	return &packedResource{
		client: client, feeding: packing, path: apiPath(gvr, namespace), packer: form.Packer, decoded: decodedResource{decoded},
	}, nil
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
	client *rest.RESTClient
	// feeding returns a client for one watch, which has a feed.
	feeding func(*codec.Feed) (*rest.RESTClient, error)

	path   []string
	packer *packed.Packer
	// decoded are for responses that are not of the usual form.
	decoded resource
}

func (r *packedResource) request(client *rest.RESTClient, options *metav1.ListOptions) *rest.Request {
	return client.Get().AbsPath(r.path...).SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// List implements resource. It packs each item as it comes, so that the whole response is never in memory.
func (r *packedResource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	body, err := r.request(r.client, &options).Stream(ctx)
	if err != nil {
		if utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) {
			return r.decoded.List(ctx, options) // which tries again, unlike Stream
		}
		return nil, err
	}
	defer body.Close()
	list, err := codec.ReadList(body, r.packer)
	switch {
	case errors.Is(err, codec.ErrUnusual):
		return r.decoded.List(ctx, options)
	case err != nil:
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	return list, nil
}

// Watch implements resource. The watch has batches.
func (r *packedResource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	feed := codec.NewFeed()
	client, err := r.feeding(feed)
	if err != nil {
		return nil, err
	}
	options.Watch = true
	w, err := r.request(client, &options).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return feed.Of(w), nil
}
