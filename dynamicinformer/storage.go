package dynamicinformer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/store"
)

// Storage says how the objects of a type are kept in memory. In every mode handlers, listers and stores hand
// out *unstructured.Unstructured with client-go's contract: shared and read-only. The zero value means that
// it is not set, which in the end comes to StoragePacked.
type Storage struct {
	// Mode is the way to keep objects.
	Mode StorageMode

	// Compression makes compressors for StorageCompressed and StorageAdaptive, which require it; with other
	// modes it is ignored. Package storage/s2 has one: s2.New(s2.Options{}). That of storage/zstd takes more
	// time, for less memory where objects are large.
	Compression Compression

	// CompressLists has StorageAdaptive compress the objects of lists and watch-lists on arrival, from 1 MB
	// on, rather than after the cache has synced. Filling a cache then takes as much memory and time as with
	// StorageCompressed. Other modes ignore it. Options.MemoryBudget implies it.
	CompressLists bool
}

// StorageMode is a way to keep objects.
type StorageMode int

const (
	storageUnset StorageMode = iota
	// StoragePacked keeps the JSON of objects. An object is decoded when it is read, and the decoded copy is
	// shared until the garbage collector takes it. It suits most programs.
	StoragePacked
	// StorageCompressed is StoragePacked with compression: reading costs decompressing as well. It suits
	// large objects that are seldom read.
	StorageCompressed
	// StorageObject keeps objects decoded, in eight times the memory of StoragePacked and more: it suits
	// types whose objects are all read all the time.
	StorageObject
	// StorageMetadata keeps the metadata of objects only, in the way of StoragePacked. They are of kind
	// PartialObjectMetadata in meta.k8s.io/v1. With a client of this package the server sends no more than
	// that.
	StorageMetadata
	// StorageAdaptive keeps objects that are in use as StoragePacked does, and those that nobody reads as
	// StorageCompressed does: a list is compressed in the background right after it was stored, a new or
	// changed object when it was not read for ten seconds or more, one that had been read now and then after
	// a minute. One that is read again and again is decompressed. Types whose objects come to less than 1 MB
	// stay packed, unless Options.MemoryBudget asks for more. Calls of handlers do not count as reads.
	StorageAdaptive
)

var storageModes = map[StorageMode]string{
	storageUnset: "", StoragePacked: "packed", StorageCompressed: "compressed", StorageObject: "object",
	StorageMetadata: "metadata",
	StorageAdaptive: "adaptive",
}

// String returns the name of the mode: packed, compressed, adaptive, object or metadata; "" when it is not
// set.
func (m StorageMode) String() string {
	if name, ok := storageModes[m]; ok {
		return name
	}
	return fmt.Sprintf("StorageMode(%d)", int(m))
}

// MarshalText implements encoding.TextMarshaler with String.
func (m StorageMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it takes what String returns.
func (m *StorageMode) UnmarshalText(text []byte) error {
	for mode, name := range storageModes {
		if name == string(text) {
			*m = mode
			return nil
		}
	}
	return fmt.
		Errorf("%q is no storage mode; there are packed, compressed, adaptive, object and metadata", text)
}

// Compression makes compressors for types of objects. It is an interface, so that only programs that compress
// link a compressor. Its method must be safe for concurrent use, and its values comparable with ==: informers
// are shared between those that ask for the same.
type Compression interface {
	// Train returns a Compressor that suits JSON like the samples, which must be neither changed nor kept. It
	// is called with the first few hundred objects of a type, and again when the results get much worse.
	// Until then, and where it fails, objects are kept as they are.
	Train(samples [][]byte) (Compressor, error)
}

// Compressor compresses the JSON of objects. Both methods must be safe for concurrent use. Objects refer to
// the Compressor that they were compressed with, which lives as long as they do.
type Compressor = interface {
	// Compress appends the compressed form of src to dst, and returns the result.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress made src of to dst, and returns the result. It must not change src.
	// The error is for data that is damaged.
	Decompress(dst, src []byte) ([]byte, error)
}

func (s Storage) isSet() bool { return s != Storage{} }

// effective is the mode that the storage comes to.
func (s Storage) effective() StorageMode {
	if s.Mode == storageUnset {
		return StoragePacked
	}
	return s.Mode
}

func (s Storage) validate() error {
	switch {
	case s.Mode < storageUnset || s.Mode > StorageAdaptive:
		return fmt.Errorf("Storage: there is no mode %d", int(s.Mode))
	case s.Mode == StorageCompressed && s.Compression == nil:
		return errors.New("Storage: StorageCompressed needs a Compression; package storage/s2 has one")
	case s.Mode == StorageAdaptive && s.Compression == nil:
		return errors.New("Storage: StorageAdaptive needs a Compression; package storage/s2 has one")
	}
	return nil
}

// form returns how the store of one informer keeps objects, and what is to be done to them before. Where that
// is StripManagedFields, objects need not be decoded for it.
func (o ResourceOptions) form() (store.Form, cache.TransformFunc, error) {
	prune, transform := o.Prune, o.Transform
	if isStripManagedFields(transform) {
		transform = nil
		prune.Presets = append(slices.Clone(prune.Presets), PruneManagedFields)
	}
	pruner, err := prune.pruner()
	if err != nil {
		return nil, nil, err
	}
	return o.Storage.form(pruner), transform, nil
}

// isStripManagedFields compares code addresses: funcs cannot be compared otherwise.
func isStripManagedFields(transform cache.TransformFunc) bool {
	return transform != nil &&
		reflect.ValueOf(transform).Pointer() == reflect.ValueOf(StripManagedFields).Pointer()
}

func (s Storage) form(pruner *packed.Pruner) store.Form {
	switch s.Mode {
	case StorageObject:
		return store.Objects(pruner)
	case StorageMetadata:
		return store.NewMetadata(pruner)
	case StorageCompressed:
		return store.NewPacked(pruner, s.Compression)
	case StorageAdaptive:
		form := store.NewAdaptive(pruner, s.Compression)
		if s.CompressLists {
			form.CompressLists()
		}
		return form
	default:
		return store.NewPacked(pruner, nil)
	}
}

// wire returns how the objects of a form are requested: packed as they arrive, and their metadata alone if no
// more is stored.
func (o ResourceOptions) wire(form store.Form) requests.Form {
	return requests.Form{Packer: form.Packer(), Metadata: o.Storage.Mode == StorageMetadata}
}
