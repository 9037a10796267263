package codec

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Wrap returns the serializer of dynamic.ConfigFor with a faster way to read JSON. It writes as before, and
// other media types are passed on. The result is safe for concurrent use if stock is.
func Wrap(stock runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	decoder := jsontext.NewDecoder()
	typed := typedKinds()
	infos := append([]runtime.SerializerInfo(nil), stock.SupportedMediaTypes()...)
	for i := range infos {
		if infos[i].MediaType != runtime.ContentTypeJSON {
			continue
		}
		infos[i].Serializer = &objectSerializer{Serializer: infos[i].Serializer, decoder: decoder, typed: typed}
		if infos[i].StreamSerializer != nil {
			stream := *infos[i].StreamSerializer
			stream.Serializer = &eventSerializer{Serializer: stream.Serializer}
			stream.Framer = &framer{Framer: stream.Framer}
			infos[i].StreamSerializer = &stream
		}
	}
	return &negotiatedSerializer{NegotiatedSerializer: stock, infos: infos}
}

// negotiatedSerializer is the wrapped one with other serializers.
type negotiatedSerializer struct {
	runtime.NegotiatedSerializer
	infos []runtime.SerializerInfo
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n *negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return n.infos }

// typedKinds returns the kinds that a dynamic client decodes into Go types. It asks for group and version,
// too, but some kinds it takes for its own in any group, and a kind too many only costs time.
var typedKinds = sync.OnceValue(func() map[string]bool {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kinds := map[string]bool{}
	for gvk := range scheme.AllKnownTypes() {
		kinds[gvk.Kind] = true
	}
	return kinds
})
