package dynamicinformer

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/store"
)

// Storage selects the format of a type's objects in memory. In every mode, handlers, listers and stores
// return *unstructured.Unstructured with client-go's contract: shared and read-only. Default: StoragePacked.
type Storage struct {
	Mode StorageMode

	// Compression is required by StorageCompressed and StorageAdaptive, and ignored by other modes. Use
	// s2.New() of package adapters/storage/s2.
	Compression Compression

	// CompressLists makes StorageAdaptive compress lists and watch-lists of 1 MB or more on arrival, rather
	// than after the sync. Filling a cache then takes as much memory and time as with StorageCompressed.
	// Other modes ignore it. Options.MemoryBudget implies it.
	CompressLists bool
}

// StorageMode is the format of objects in memory.
type StorageMode int

const (
	storageUnset StorageMode = iota
	// StoragePacked stores JSON. An object is decoded when it is read, and the decoded copy is shared until
	// the garbage collector frees it. It suits most programs.
	StoragePacked
	// StorageCompressed works like StoragePacked with compression: reads also decompress. It suits large
	// objects that are seldom read.
	StorageCompressed
	// StorageObject stores decoded objects, in at least eight times the memory of StoragePacked. It suits
	// types with objects that are all read all the time.
	StorageObject
	// StorageMetadata stores only the metadata of objects, packed, as PartialObjectMetadata of
	// meta.k8s.io/v1. With a client of this package the server sends only metadata.
	StorageMetadata
	// StorageAdaptive stores objects in use as StoragePacked does, and unread objects as StorageCompressed
	// does. It compresses a list in the background after storing it, and a new or changed object after ten
	// seconds without a read. An object that was read a few times is compressed after a minute without a
	// read. Objects that are read repeatedly are decompressed. Types with less than 1 MB stay packed, unless
	// Options.MemoryBudget requires more. Calls of handlers do not count as reads.
	StorageAdaptive
	// StorageNone stores no objects, only the key, UID and resource version of each, in 61 to 77 bytes. It
	// suits programs that handle each object when it arrives, such as collectors and exporters (TestNone).
	//
	// Handlers receive each object that arrives: in OnAdd, as the new object of OnUpdate, and in OnDelete for
	// an observed deletion. In place of an earlier state they receive a PartialObjectMetadata with only name,
	// namespace, UID and resource version: as the old object of OnUpdate, in OnLeftShard, and in the
	// DeletedFinalStateUnknown of a deletion that a relist shows or an object that leaves AnyOf. A relist
	// delivers unchanged objects as updates with an unchanged resource version. A complete list is in memory
	// until the handlers have received it, and their queues hold arriving objects: Coalesce bounds them, and
	// Keep and Prune make objects small.
	//
	// A handler that is added after the start makes the informer list again. It first receives the objects
	// of that list, marked as initial, then all further changes (TestNoneLateHandler). There are no resyncs;
	// Informer.Relist delivers all objects again.
	//
	// Reads, queries, indexes, histories and MoveHandlers fail with ErrNotStored (TestNoneIsRefused). Calls
	// without an error result panic with it. Only keys and numbers of objects can be read. Resync, Indexers,
	// Indexes and Persist are errors.
	StorageNone
)

var storageModes = map[StorageMode]string{
	storageUnset: "", StoragePacked: "packed", StorageCompressed: "compressed", StorageObject: "object",
	StorageMetadata: "metadata",
	StorageAdaptive: "adaptive", StorageNone: "none",
}

// String returns packed, compressed, adaptive, object, metadata, none, or "" if the mode is unset.
func (m StorageMode) String() string {
	if name, ok := storageModes[m]; ok {
		return name
	}
	return fmt.Sprintf("StorageMode(%d)", int(m))
}

// MarshalText implements encoding.TextMarshaler with String.
func (m StorageMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it accepts the texts of String, in any case.
func (m *StorageMode) UnmarshalText(text []byte) error {
	for mode, name := range storageModes {
		if strings.EqualFold(name, string(text)) {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("unknown storage mode %q: use packed, compressed, adaptive, object, metadata or none", text)
}

// Compression makes compressors for types. It is an interface, so that programs without compression do
// not link a compressor. It must be safe for concurrent use, and its values comparable with ==, because
// informers with equal options are shared.
type Compression interface {
	// Train returns a Compressor for JSON like the samples, which it must neither change nor retain. It is
	// called with the first few hundred objects of a type, and again when the compression ratio gets much
	// worse. Until then, and after an error, objects stay uncompressed.
	Train(samples [][]byte) (Compressor, error)
}

// Compressor compresses the JSON of objects. It must be safe for concurrent use. Objects refer to the
// Compressor that compressed them, so it lives as long as they do.
type Compressor = interface {
	// Compress appends the compressed src to dst and returns the result.
	Compress(dst, src []byte) []byte
	// Decompress appends the text of src, a result of Compress, to dst and returns the extended slice. It
	// must not change src. It returns an error for damaged data.
	Decompress(dst, src []byte) ([]byte, error)
}

func (s Storage) validate() error {
	switch {
	case s.Mode < storageUnset || s.Mode > StorageNone:
		return fmt.Errorf("Storage.Mode is %d, which does not exist", int(s.Mode))
	case s.Mode == StorageCompressed && s.Compression == nil:
		return errors.New("StorageCompressed requires Storage.Compression: use package adapters/storage/s2")
	case s.Mode == StorageAdaptive && s.Compression == nil:
		return errors.New("StorageAdaptive requires Storage.Compression: use package adapters/storage/s2")
	}
	return nil
}

// checkNone returns an error if StorageNone is combined with an option that needs stored objects.
func (o ResourceOptions) checkNone() error {
	if o.Storage.Mode != StorageNone {
		return nil
	}
	for _, option := range []struct {
		name  string
		isSet bool
	}{
		{"Resync", o.Resync != nil && *o.Resync > 0},
		{"Persist", o.Persist != nil && *o.Persist},
		{"Indexes", o.Indexes != nil},
		{"Indexers", len(o.Indexers) > 0},
	} {
		if option.isSet {
			return fmt.Errorf("%s needs stored objects: %w, or unset %[1]s", option.name, ErrNotStored)
		}
	}
	return nil
}

// checkStored returns ErrNotStored if the informer stores no objects.
func (i *Informer) checkStored() error {
	if i.core.Store().StoresObjects() {
		return nil
	}
	return fmt.Errorf("%s: %w", formatGVR(i.gvr), ErrNotStored)
}

// storeFormat returns the store's format for a type.
func (o ResourceOptions) storeFormat(gr schema.GroupResource,
	dictionaries *store.Dictionaries) (format store.Format, err error) {
	pruner, err := o.pruner()
	if err != nil {
		return nil, err
	}
	dictionary := dictionaries.Get(gr, o.key().prune, o.Storage.Compression)
	switch o.Storage.Mode {
	case StorageObject:
		format = store.Objects(pruner)
	case StorageMetadata:
		format = store.NewMetadata(pruner)
	case StorageNone:
		format = store.NewIdentities(pruner)
	case StorageCompressed:
		format = store.NewPacked(pruner, dictionary)
	case StorageAdaptive:
		adaptive := store.NewAdaptive(pruner, dictionary)
		if o.Storage.CompressLists {
			adaptive.CompressLists()
		}
		format = adaptive
	default:
		format = store.NewPacked(pruner, nil)
	}
	return format, nil
}
