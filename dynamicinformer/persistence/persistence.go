package persistence

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Backend stores the content of informers beyond the end of the process. Implementations must be safe for
// concurrent use. They may fail at any time: the informer continues, tries again later, and reports the
// failure in its status. When the context of a method ends, the informer stops waiting for the method, which
// should then return context.Cause.
type Backend interface {
	// Open opens the stored content of one informer and locks it until StoredContent.Close. Open fails if
	// another owner holds the lock.
	Open(ctx context.Context, view View) (StoredContent, error)
}

// View identifies the content of an informer. It is the same in every process with the same options.
type View struct {
	Resource schema.GroupVersionResource `json:"resource"`
	// Options identifies the informer's options.
	Options string `json:"options,omitempty"`
	// Complete reports whether the content is all objects of the type with all their fields.
	Complete bool `json:"complete,omitempty"`
}

// StoredContent is the stored content of one informer: a consistent set of objects with its Checkpoint, or
// nothing. It consists of records, which only this library reads: blocks of some dozen objects, and
// their changes. The informer calls one method at a time.
type StoredContent interface {
	// Load calls f with the checkpoint of the stored content, unless nothing is stored. f can call load. Load
	// returns the first error, its own or that of f. After an error the informer discards all loaded objects.
	Load(ctx context.Context, f func(at Checkpoint, load LoadFunc) error) error
	// Save calls write, which calls put for each record, and commits the records and the checkpoint
	// atomically. put must not retain the slices. bodies has about 64 KiB, or is nil. If whole is set, the
	// records replace the stored content; otherwise they follow it. The informer sets whole after a failed
	// Save, and for the first Save unless Load has succeeded.
	Save(ctx context.Context, checkpoint Checkpoint, whole bool, write func(put PutRecord) error) error
	// NeedsRewrite reports whether the next Save should be whole, because the changes outweigh the blocks.
	NeedsRewrite() bool
	// Close releases the lock. The content remains stored.
	Close() error
}

// PutRecord stores a record.
type PutRecord = func(head, bodies []byte) error

// LoadFunc calls onRecord with each record, in the order of the calls of put, until the first error.
type LoadFunc = func(onRecord func(Record) error) error

// Record is a stored record.
type Record struct {
	// Head is valid until onRecord returns.
	Head []byte
	// Bodies returns the bodies; nil if the record has none. The informer can call it later, and
	// concurrently with any method. Retained is the memory that it retains, in bytes.
	Bodies   func() ([]byte, error)
	Retained int
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
	// Kind and Namespaced describe the type. Kind is empty if unknown.
	Kind       string `json:"kind,omitempty"`
	Namespaced bool   `json:"namespaced,omitempty"`
	// Cluster is the UID of the namespace kube-system, or empty if it may not be read. Endpoint
	// identifies the server by address and certificate authority.
	Cluster  types.UID `json:"cluster,omitempty"`
	Endpoint string    `json:"endpoint,omitempty"`
	// Objects is the number of saved objects.
	Objects int `json:"objects"`
	// Time is the time of the Save.
	Time time.Time `json:"time"`
}
