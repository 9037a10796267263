package persistence

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Backend stores the content of informers beyond the end of the process. Implementations must be safe for
// concurrent use. They may fail at any time: the informer continues, tries again later, and reports the
// failure in its status. When the context of a method ends, the informer stops waiting for the method, which
// should then return context.Cause.
type Backend interface {
	// Open opens the stored content of one informer and locks it until StoredContent.Close. The key
	// identifies the type and the informer's options. Open fails if another owner holds the lock.
	Open(ctx context.Context, key string) (StoredContent, error)
}

// StoredContent is the stored content of one informer: a consistent set of objects with its Checkpoint, or
// nothing. The informer calls one method at a time.
type StoredContent interface {
	// Checkpoint returns the checkpoint of the stored content, and false if nothing is stored.
	Checkpoint(ctx context.Context) (Checkpoint, bool, error)
	// Load calls onObject with the JSON of each object, which is valid until onObject returns. It returns the
	// first error, its own or that of onObject. After an error the informer discards all loaded objects.
	Load(ctx context.Context, onObject func(json []byte) error) error
	// Save calls write and commits the written changes and the checkpoint atomically. If whole is set,
	// they replace the stored content, and objects arrive in the order of their keys, each once. The
	// informer sets whole after a failed Save, and for the first Save unless Load has succeeded.
	Save(ctx context.Context, checkpoint Checkpoint, whole bool, write func(Writer) error) error
	// Close releases the lock. The content remains stored.
	Close() error
}

// BlockContent is a StoredContent that stores whole contents in blocks of some dozen objects. The head of a
// block has the identity and labels of its objects, the bodies have their JSON. The next process loads all
// heads, and the bodies of a block when a caller first reads one of its objects. Changes are stored
// separately until the next whole content. The informer calls SaveBlocks and LoadBlocks instead of Save and
// Load.
type BlockContent interface {
	StoredContent
	// SaveBlocks is Save with blocks: a whole content arrives as blocks, followed by the objects that
	// do not fit into blocks.
	SaveBlocks(ctx context.Context, checkpoint Checkpoint, whole bool, write func(BlockWriter) error) error
	// LoadBlocks is Load with blocks. It first calls onChange for each change since the last whole
	// content, in order; json is nil for a deleted object, and valid until onChange returns. Then it
	// calls onBlock for each block: head is valid until onBlock returns. bodies returns the bodies of
	// the block; the informer can call it later, and concurrently with any other method. size is the
	// memory that bodies retains, in bytes.
	LoadBlocks(ctx context.Context,
		onChange func(key string, json []byte) error,
		onBlock func(head []byte, bodies func() ([]byte, error), size int) error,
	) error
	// NeedsRewrite reports whether the next Save should be whole, because the changes outweigh the blocks.
	NeedsRewrite() bool
}

// Writer receives the changes of a StoredContent.
type Writer interface {
	// Put stores the JSON of an object, replacing the stored one. It must not retain json.
	Put(key string, json []byte) error
	// Delete removes the object.
	Delete(key string) error
}

// BlockWriter is a Writer that accepts blocks.
type BlockWriter interface {
	Writer
	// PutBlock stores a block. It must not retain the slices. bodies has about 64 KiB.
	PutBlock(head, bodies []byte) error
}

// Checkpoint identifies the server state that a stored content corresponds to.
type Checkpoint struct {
	// ResourceVersion is the version from which a watch continues. It is empty if each namespace has its
	// own watch: then Namespaces has the version of each, as "a=12,b=7", ordered by name.
	ResourceVersion string `json:"resourceVersion"`
	Namespaces      string `json:"namespaces,omitempty"`
	// APIVersion is the API version of the objects. UID is the UID of the CRD, if known.
	APIVersion string    `json:"version"`
	UID        types.UID `json:"uid,omitempty"`
	// Cluster is the UID of the namespace kube-system, or empty if it may not be read. Endpoint
	// identifies the server by address and certificate authority.
	Cluster  types.UID `json:"cluster,omitempty"`
	Endpoint string    `json:"endpoint,omitempty"`
	// Objects is the number of objects.
	Objects int `json:"objects"`
	// Time is the time of the Save.
	Time time.Time `json:"time"`
}
