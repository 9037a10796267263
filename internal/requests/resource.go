package requests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

// ObjectOptions define how to request and pack the objects of a type.
type ObjectOptions struct {
	// Packer packs objects from the responses to a Client.
	Packer *packed.Packer
	// Metadata requests only the metadata.
	Metadata bool
}

// resource makes the requests for a type, or one namespace of it. Lists are *packed.List or
// *unstructured.UnstructuredList; the objects of events are *packed.Object or *unstructured.Unstructured.
// Other responses (a Status, a table) are as the dynamic client decodes them.
type resource interface {
	// List requests a list. limited applies the client's rate limit, which does not apply to watches.
	List(ctx context.Context, options metav1.ListOptions, limited bool) (runtime.Object, error)
	// Events requests a watch.
	Events(ctx context.Context, options metav1.ListOptions) (events, error)
}

// newResource returns the resource for gvr in a namespace; empty means all. With a Client, objects are packed
// as they arrive, filtered by selection, and requested as metadata only if objects.Metadata is set. With
// other clients, the store packs and filters the decoded objects. A nil selection selects everything.
func newResource(from dynamic.Interface, gvr schema.GroupVersionResource, namespace string,
	objects ObjectOptions, selection *Selection) resource {
	client, ok := from.(*Client)
	switch {
	case !ok && namespace != "":
		return decodedResource{from.Resource(gvr).Namespace(namespace)}
	case !ok:
		return decodedResource{from.Resource(gvr)}
	}
	full := &packedResource{owner: client, gvr: gvr, namespace: namespace, packer: objects.Packer,
		lists: wholeObjectContent, events: wholeObjectContent,
		dropsManagedFields: objects.Packer.Pruner().Removes(packed.Path{{Key: "metadata"}, {Key: "managedFields"}})}
	if selection != nil {
		full.packer = objects.Packer.WithFilter(selection.admitUnpacked)
	}
	if !objects.Metadata {
		return full
	}
	metadata := *full
	metadata.lists, metadata.events = metadataList, metadataOfEvents
	return &metadataResource{metadata: &metadata, full: full}
}

// decodedResource makes the requests with a dynamic client.
type decodedResource struct{ dynamic.ResourceInterface }

// List ignores limited: only the client knows about its limit.
func (d decodedResource) List(ctx context.Context, options metav1.ListOptions,
	_ bool) (runtime.Object, error) {
	list, err := d.ResourceInterface.List(ctx, options)
	if err != nil {
		return nil, err // not the nil list in a non-nil interface
	}
	return list, CheckList(list)
}

func (d decodedResource) Events(ctx context.Context, options metav1.ListOptions) (events, error) {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	a.clientReads = true
	a.abortAfter(a.headerTimeout)
	w, err := d.Watch(ctx, options)
	a.headersArrived()
	if err != nil {
		return nil, err
	}
	return &clientEvents{w, ctx, a}, nil
}

// Accept headers. A server that cannot reduce a type to its metadata sends whole objects.
const (
	wholeObjectContent = "application/json"
	metadataList       = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
	metadataOfEvents   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// withoutManagedFields returns an Accept header that prefers each content without managedFields (KEP-5958).
// Kubernetes before 1.38 ignores the parameter. The original content follows for servers that reject it.
func withoutManagedFields(content string) string {
	var accept strings.Builder
	for alternative := range strings.SplitSeq(content, ",") {
		accept.WriteString(alternative + ";drop=metadata.managedFields," + alternative + ",")
	}
	return strings.TrimSuffix(accept.String(), ",")
}

// metadataResource requests metadata only, and whole objects after the server has refused that with 406,
// which a server may do although Accept lists an alternative. The store then reduces the objects.
type metadataResource struct {
	metadata, full *packedResource
	refused        atomic.Bool
}

func (m *metadataResource) List(
	ctx context.Context, options metav1.ListOptions, limited bool,
) (runtime.Object, error) {
	return requestWithFallback(m,
		func(r *packedResource) (runtime.Object, error) { return r.List(ctx, options, limited) })
}

func (m *metadataResource) Events(ctx context.Context, options metav1.ListOptions) (events, error) {
	return requestWithFallback(m, func(r *packedResource) (events, error) { return r.Events(ctx, options) })
}

func requestWithFallback[T any](m *metadataResource, request func(*packedResource) (T, error)) (T, error) {
	if !m.refused.Load() {
		answer, err := request(m.metadata)
		if !apierrors.IsNotAcceptable(err) {
			return answer, err
		}
		m.refused.Store(true)
	}
	return request(m.full)
}

// get returns a GET request for a type in a namespace; empty means all. Its error, which the request returns
// when it is sent, reports an invalid namespace.
func (c *Client) get(gvr schema.GroupVersionResource, namespace string) *rest.Request {
	path := []string{"apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"api", gvr.Version}
	}
	return c.defaultREST.Get().AbsPath(path...).NamespaceIfScoped(namespace, namespace != "").
		Suffix(gvr.Resource) // errors do not name it
}

// packedResource packs objects from the bytes of responses.
type packedResource struct {
	owner     *Client
	gvr       schema.GroupVersionResource
	namespace string
	// lists and events are the Accept headers of lists and watches.
	lists, events string
	packer        *packed.Packer
	// dropsManagedFields requests objects without managedFields, because the packer removes them.
	dropsManagedFields bool
}

// request returns a request with an Accept header. The client does not retry it: the Pacer decides that.
func (r *packedResource) request(content string, options *metav1.ListOptions) *rest.Request {
	if r.dropsManagedFields {
		content = withoutManagedFields(content)
	}
	return r.owner.get(r.gvr, r.namespace).SetHeader("Accept", content).MaxRetries(0).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// JSONLister is a transport that returns the objects of a list without encoding the list. A text is valid
// until the next one is yielded. ListJSON may ignore a limit. It returns nil if the list must be requested.
type JSONLister interface {
	ListJSON(gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (
		objects iter.Seq2[[]byte, error], resourceVersion string)
}

// listJSON lists with a JSONLister. It returns nil if that is impossible, and for probes.
func (r *packedResource) listJSON(options metav1.ListOptions) *packed.List {
	lister, ok := r.owner.config.Transport.(JSONLister)
	if !ok || r.lists != wholeObjectContent || options.Limit == 1 {
		return nil
	}
	objects, version := lister.ListJSON(r.gvr, r.namespace, options)
	if objects == nil {
		return nil
	}
	list := &packed.List{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []*packed.Object{}}
	for text, err := range objects {
		object := r.packer.TryPack(text)
		switch {
		case err != nil || object == nil:
			return nil
		case object != packed.Filtered:
			list.Items = append(list.Items, r.packer.ForList(object))
		}
	}
	return list
}

// List packs each item as it arrives, so that the response is never completely in memory.
func (r *packedResource) List(
	ctx context.Context, options metav1.ListOptions, limited bool,
) (runtime.Object, error) {
	if list := r.listJSON(options); list != nil {
		return list, nil
	}
	request := func() *rest.Request {
		if limited {
			return r.request(r.lists, &options)
		}
		return r.request(r.lists, &options).Throttle(nil)
	}
	body, err := request().Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	list, err := codec.ReadList(body, r.packer)
	switch {
	case errors.Is(err, codec.ErrUnsupportedList): // client-go decodes other responses or returns the error
		decoded := &unstructured.UnstructuredList{}
		if err := request().Do(ctx).Into(decoded); err != nil {
			return nil, err
		}
		return decoded, CheckList(decoded)
	case err != nil:
		return nil, fmt.Errorf("read list: %w", err)
	}
	return list, nil
}

// Events implements resource. Like the watches of client-go, they are not rate-limited. Only watch-lists
// accept compressed responses, because a decompressor needs more memory than most types.
func (r *packedResource) Events(ctx context.Context, options metav1.ListOptions) (events, error) {
	options.Watch = true
	request := r.request(r.events, &options).Throttle(nil)
	if !sendsInitialEvents(&options) {
		request.SetHeader(acceptEncodingHeader, identityEncoding)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	return codec.NewEvents(body, r.owner.config.NegotiatedSerializer, r.packer), nil
}
