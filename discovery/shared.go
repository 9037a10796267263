package discovery

import (
	"weak"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// The clients of many equal clusters share documents, by the hashes of their texts, and catalogs.
var (
	sharedDocuments jsontext.Shared[[32]byte, documentGroups]
	sharedContents  jsontext.Shared[contentKey, catalogContent]
)

// contentKey has the documents of a catalog.
type contentKey struct{ core, groups weak.Pointer[documentGroups] }
