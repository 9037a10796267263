package packed

import (
	"strings"
	"sync"
)

// identityType is the typeInfo of identities, and of no other objects.
var identityType = sync.OnceValue(func() *typeInfo {
	info := *uncompressedType([]byte("meta.k8s.io/v1"), []byte("PartialObjectMetadata"))
	return &info
})

// NewIdentity returns a PartialObjectMetadata with the name and namespace of a key, a UID and a resource
// version. Stores that store no objects return it in place of an object.
func NewIdentity(key, uid, version string) *Object {
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	const fields = 160 // the bytes of names and quotes
	text := append(make([]byte, 0, fields+len(key)+len(uid)+len(version)),
		`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":`...)
	text, _ = appendString(text, strings.ToValidUTF8(name, "\uFFFD"))
	for _, field := range [...][2]string{
		{`,"namespace":`, namespace}, {`,"resourceVersion":`, version}, {`,"uid":`, uid},
	} {
		if field[1] != "" {
			text, _ = appendString(append(text, field[0]...), strings.ToValidUTF8(field[1], "\uFFFD"))
		}
	}
	o := (*Packer)(nil).TryPack(append(text, "}}"...))
	o.info = identityType()
	return o
}

// IsIdentity reports whether the object is a result of NewIdentity.
func (o *Object) IsIdentity() bool { return o.info == identityType() }
