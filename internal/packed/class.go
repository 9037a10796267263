package packed

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// class is what objects of one kind have in common, so that each needs one pointer for all of it.
type class struct {
	apiVersion, kind string
	gvk              schema.GroupVersionKind
	// usual says that apimachinery decodes objects with this version and kind.
	usual   bool
	decoder *jsontext.Decoder
	// compressor is what the JSON was compressed with; nil: it is not compressed.
	compressor Compressor
	// block has the bodies of the objects that were read with it; nil: they have their own. Each block has
	// its own classes.
	block *Block
	// kept is the object itself, where JSON cannot express it. Such an object has a class of its own.
	kept *unstructured.Unstructured
}

// maxClasses is how many kinds share their classes. API servers have hundreds; the limit keeps a server that
// makes up kinds from filling the memory.
const maxClasses = 4096

// classCache finds the class of a kind. Its zero value is empty.
type classCache struct {
	last  atomic.Pointer[class] // most caches see one kind
	mu    sync.Mutex
	known map[[2]string]*class
}

// get returns the class of objects of this version and kind, and makes it with build where there is none.
func (c *classCache) get(apiVersion, kind []byte, build func(apiVersion, kind string) *class) *class {
	if last := c.last.Load(); last != nil && last.kind == string(kind) &&
		last.apiVersion == string(apiVersion) {
		return last
	}
	id := [2]string{string(apiVersion), string(kind)}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.known[id]
	if found == nil {
		found = build(id[0], id[1])
		if len(c.known) < maxClasses {
			if c.known == nil {
				c.known = map[[2]string]*class{}
			}
			c.known[id] = found
		}
	}
	c.last.Store(found)
	return found
}

// plain are the classes of objects that are not compressed.
var plain classCache

// plainClass returns the class of objects of this version and kind that are not compressed.
func plainClass(apiVersion, kind []byte) *class {
	return plain.get(apiVersion, kind, func(apiVersion, kind string) *class {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return &class{apiVersion: apiVersion, kind: kind, decoder: sharedDecoder()}
		}
		usual := gv.Version != "" && kind != ""
		return &class{apiVersion: apiVersion, kind: kind, gvk: gv.WithKind(kind), usual: usual,
			decoder: sharedDecoder()}
	})
}

// sharedDecoder is the decoder of all classes, so that their number does not multiply the tables of strings.
var sharedDecoder = sync.OnceValue(func() *jsontext.Decoder { return jsontext.NewDecoder() })
