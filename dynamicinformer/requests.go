package dynamicinformer

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

// requests lists and watches a type, or one namespace of it. Lists are *packed.List or *unstructured.UnstructuredList,
// the objects of events *packed.Object or *unstructured.Unstructured. What is no object (a Status, a table) comes as
// the dynamic client has it.
type requests interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newRequests returns the requests for gvr in a namespace or (empty) all, in the way that suits its storage. With a
// client of NewClient, objects are packed as they come, and the server is asked for metadata alone where no more is
// kept. What another client has decoded is packed by the store. Objects that are kept decoded are packed on the way
// where something is left out of them, which is cheaper than decoding it.
func newRequests(from dynamic.Interface, gvr schema.GroupVersionResource, namespace string, options ResourceOptions) (requests, error) {
	resource := dynamic.ResourceInterface(from.Resource(gvr))
	if namespace != "" {
		resource = from.Resource(gvr).Namespace(namespace)
	}
	form, _, err := options.form()
	if err != nil {
		return nil, err
	}
	own, ok := from.(*client)
	if !ok || options.Storage.Mode == StorageObject && form.Packer().Pruner() == nil {
		return decodedRequests{resource}, nil
	}
	if problems := rest.IsValidPathSegmentName(namespace); len(problems) > 0 {
		return nil, fmt.Errorf("invalid namespace %q: %v", namespace, problems)
	}
	return own.packed(gvr, namespace, form.Packer(), options.Storage.Mode == StorageMetadata)
}

// decodedRequests are those of a dynamic client.
type decodedRequests struct{ dynamic.ResourceInterface }

// List implements requests.
func (d decodedRequests) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := d.ResourceInterface.List(ctx, options)
	if err != nil {
		return nil, err // not the nil list in a non-nil interface
	}
	return list, nil
}

// failedRequests are those that cannot be made.
type failedRequests struct{ err error }

// List implements requests.
func (f failedRequests) List(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, f.err
}

// Watch implements requests.
func (f failedRequests) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, f.err
}

// metadataContent asks the server for the metadata of objects alone.
const metadataContent = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// packed returns the requests for packed objects.
func (c *client) packed(gvr schema.GroupVersionResource, namespace string, packer *packed.Packer, metadata bool) (requests, error) {
	config := rest.CopyConfig(c.config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if metadata {
		config.AcceptContentTypes = metadataContent
	}
	packing := func(feed *codec.Feed) (*rest.RESTClient, error) {
		config := rest.CopyConfig(config)
		config.NegotiatedSerializer = codec.WrapPacked(config.NegotiatedSerializer, packer, feed)
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
	return &packedRequests{
		client: client, feeding: packing, path: apiPath(gvr, namespace), packer: packer, decoded: decodedRequests{decoded},
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

// packedRequests packs objects from the bytes of responses.
type packedRequests struct {
	client *rest.RESTClient
	// feeding returns a client for one watch, which has a feed.
	feeding func(*codec.Feed) (*rest.RESTClient, error)

	path   []string
	packer *packed.Packer
	// decoded are for responses that are not of the usual form.
	decoded requests
}

func (r *packedRequests) request(client *rest.RESTClient, options *metav1.ListOptions) *rest.Request {
	return client.Get().AbsPath(r.path...).SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// List implements requests. It packs each item as it comes, so that the whole response is never in memory.
func (r *packedRequests) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
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

// Watch implements requests. The watch has batches.
func (r *packedRequests) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
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
