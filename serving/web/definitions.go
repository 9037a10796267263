package web

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// definitionCache decodes CustomResourceDefinitions once in each resource version.
type definitionCache struct {
	informer *dynamicinformer.Informer
	mu       struct {
		sync.Mutex
		decoded map[schema.GroupResource]decodedDefinition
	}
}

// decodedDefinition is a decoded CRD, or nil if the CRD is malformed. identity is the UID and resource
// version.
type decodedDefinition struct {
	identity [2]string
	*crd.Definition
}

// Definitions returns a func for Source.Definition that reads the CustomResourceDefinitions of an informer.
// It is safe for concurrent use.
func Definitions(informer *dynamicinformer.Informer) func(schema.GroupVersionResource) *crd.Definition {
	d := &definitionCache{informer: informer}
	d.mu.decoded = map[schema.GroupResource]decodedDefinition{}
	return d.definition
}

func (d *definitionCache) definition(gvr schema.GroupVersionResource) *crd.Definition {
	gr := gvr.GroupResource()
	stored, _ := d.informer.Snapshot().Stored(gr.String())
	d.mu.Lock()
	defer d.mu.Unlock()
	object, ok := stored.(interface {
		metav1.Object
		dynamicinformer.PackedObject
	})
	if !ok {
		delete(d.mu.decoded, gr)
		return nil
	}
	identity := [2]string{string(object.GetUID()), object.GetResourceVersion()}
	cached, ok := d.mu.decoded[gr]
	if !ok || cached.identity != identity {
		cached = decodedDefinition{identity: identity}
		_ = object.ReadJSON(func(text []byte) (err error) { // a malformed definition counts as missing
			cached.Definition, err = crd.Decode(bytes.Clone(text))
			return err
		})
		d.mu.decoded[gr] = cached
	}
	return cached.Definition
}
