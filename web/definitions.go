package web

import (
	"bytes"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// definitions gives the CustomResourceDefinitions of types as they are now. Each is decoded once for as long
// as it stays.
type definitions struct {
	informer *dynamicinformer.Informer
	mu       struct {
		sync.Mutex
		decoded map[schema.GroupResource]decodedDefinition
	}
}

// decodedDefinition is a definition, nil for one that cannot be read, with the state of the object that it
// was read from.
type decodedDefinition struct {
	state [2]string
	*crd.Definition
}

// Definitions returns a func for Source.Definition, which gives the CustomResourceDefinitions of types as an
// informer of these has them now. It is safe for concurrent use.
func Definitions(informer *dynamicinformer.Informer) func(schema.GroupVersionResource) *crd.Definition {
	d := &definitions{informer: informer}
	d.mu.decoded = map[schema.GroupResource]decodedDefinition{}
	return d.of
}

// of returns the definition of a type, or nil where there is none. It waits for no server.
func (d *definitions) of(gvr schema.GroupVersionResource) *crd.Definition {
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
	state := [2]string{string(object.GetUID()), object.GetResourceVersion()}
	known, ok := d.mu.decoded[gr]
	if !ok || known.state != state {
		known = decodedDefinition{state: state}
		_ = object.View(func(text []byte) (err error) { // a definition that cannot be read is as none
			known.Definition, err = crd.Decode(bytes.Clone(text))
			return err
		})
		d.mu.decoded[gr] = known
	}
	return known.Definition
}
