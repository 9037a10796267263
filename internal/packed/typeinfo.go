package packed

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// typeInfo holds the properties that all objects of a type in the same form share.
type typeInfo struct {
	apiVersion, kind string
	gvk              schema.GroupVersionKind
	// decodable reports whether apimachinery decodes objects with this apiVersion and kind.
	decodable bool
	decoder   *jsontext.Decoder
	// compressor decompresses the bodies. It is nil if they are not compressed.
	compressor Compressor
	// block holds the bodies of its objects. It is nil for other objects. Blocks share no typeInfo.
	block *Block
	// unpackableObject is an object that JSON cannot represent. Such an object has a typeInfo of its own.
	unpackableObject *unstructured.Unstructured
}

// maxTypes limits the size of a typeCache. API servers have hundreds of kinds; the limit protects against
// objects with invented kinds.
const maxTypes = 4096

// typeCache maps apiVersion and kind to a typeInfo. The zero value is empty.
type typeCache struct {
	lastUsed atomic.Pointer[typeInfo] // most caches hold one kind
	mu       sync.Mutex
	byName   map[[2]string]*typeInfo
}

// get returns the typeInfo of objects with this apiVersion and kind, and calls build if it is missing.
func (c *typeCache) get(apiVersion, kind []byte, build func(apiVersion, kind string) *typeInfo) *typeInfo {
	if last := c.lastUsed.Load(); last != nil && last.kind == string(kind) &&
		last.apiVersion == string(apiVersion) {
		return last
	}
	id := [2]string{string(apiVersion), string(kind)}
	c.mu.Lock()
	defer c.mu.Unlock()
	info := c.byName[id]
	if info == nil {
		info = build(id[0], id[1])
		if len(c.byName) < maxTypes {
			if c.byName == nil {
				c.byName = map[[2]string]*typeInfo{}
			}
			c.byName[id] = info
		}
	}
	c.lastUsed.Store(info)
	return info
}

// uncompressedTypes holds the types of uncompressed objects.
var uncompressedTypes typeCache

// uncompressedType returns the typeInfo of uncompressed objects with this apiVersion and kind.
func uncompressedType(apiVersion, kind []byte) *typeInfo {
	return uncompressedTypes.get(apiVersion, kind, func(apiVersion, kind string) *typeInfo {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return &typeInfo{apiVersion: apiVersion, kind: kind, decoder: sharedDecoder()}
		}
		decodable := gv.Version != "" && kind != ""
		return &typeInfo{apiVersion: apiVersion, kind: kind, gvk: gv.WithKind(kind), decodable: decodable,
			decoder: sharedDecoder()}
	})
}

// sharedDecoder returns the decoder of all types. Sharing it shares its table of interned strings.
var sharedDecoder = sync.OnceValue(func() *jsontext.Decoder { return jsontext.NewDecoder() })
