package store

import (
	"math/bits"
	"strconv"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/crdcache/crdcache/internal/packed"
)

// An identity row is a row of a store that stores no objects. It is one allocation without pointers, which
// takes 24 bytes and the key:
//
//	bytes   0 to  7   first half of the UID, in binary
//	bytes   8 to 15   the complement of the resource version and the length of the key
//	bytes  16 to 23   second half of the UID
//	bytes  24 to …    key
//
// The second number is negative. Other rows have the length of their key there (see isIdentity). If an
// identity does not fit, because its UID or version has an unusual form, its row has a packed.NewIdentity.
const (
	identityKeyOffset = 24
	keyLengthBits     = 9 // a key has up to 317 bytes
	maxIdentityKey    = 1<<keyLengthBits - 1
	maxIdentityRV     = 1<<(62-keyLengthBits) - 1
	hasIdentityRows   = bits.UintSize == 64
)

// isIdentity reports whether a trie entry is an identity row. The first field of other entries is a string,
// whose second word is its length.
func isIdentity(entry unsafe.Pointer) bool {
	return *(*int)(unsafe.Add(entry, unsafe.Sizeof(uintptr(0)))) < 0
}

// identityHeaderOf returns the version and the length of the key of an identity row.
func identityHeaderOf(entry unsafe.Pointer) (version uint64, keyLength int) {
	header := ^*(*int64)(unsafe.Add(entry, 8))
	return uint64(header >> keyLengthBits), int(header & maxIdentityKey)
}

func identityKey(entry unsafe.Pointer) string {
	_, length := identityHeaderOf(entry)
	return unsafe.String((*byte)(unsafe.Add(entry, identityKeyOffset)), length)
}

// newIdentityRow returns an unpublished row with the identity of an object.
func newIdentityRow(o KeyedItem) *storedRow {
	uid, version := "", ""
	if m, err := meta.Accessor(o.Item); err == nil {
		uid, version = string(m.GetUID()), m.GetResourceVersion()
	}
	var buffer [16]byte
	uidBytes, isBinary := packed.AppendBinaryUID(buffer[:0], uid)
	versionNumber, err := strconv.ParseUint(version, 10, 64)
	isCanonical := err == nil && versionNumber <= maxIdentityRV &&
		strconv.FormatUint(versionNumber, 10) == version
	if !hasIdentityRows || !isBinary || !isCanonical || len(o.Key) > maxIdentityKey {
		identity := packed.NewIdentity(o.Key, uid, version)
		r := &storedRow{key: identity.Key()}
		r.object.Store(identity)
		return r
	}
	// A row may not be smaller than the type of the pointers to it.
	row := make([]byte, max(identityKeyOffset+len(o.Key), int(unsafe.Sizeof(storedRow{}))))
	copy(row[:8], uidBytes[:8])
	*(*int64)(unsafe.Pointer(&row[8])) = ^(int64(versionNumber)<<keyLengthBits | int64(len(o.Key)))
	copy(row[16:], uidBytes[8:])
	copy(row[identityKeyOffset:], o.Key)
	return (*storedRow)(unsafe.Pointer(unsafe.SliceData(row)))
}

func (r *storedRow) isIdentity() bool { return isIdentity(unsafe.Pointer(r)) }

// isSameIdentity reports whether two identity rows with one key are equal.
func (r *storedRow) isSameIdentity(other *storedRow) bool {
	return r.isIdentity() && other.isIdentity() && *(*[identityKeyOffset]byte)(unsafe.Pointer(r)) ==
		*(*[identityKeyOffset]byte)(unsafe.Pointer(other))
}

// identity returns the item of an identity row.
func (r *storedRow) identity() *packed.Object {
	row := unsafe.Pointer(r)
	var buffer [16]byte
	uidBytes := append(buffer[:0], unsafe.Slice((*byte)(row), 8)...)
	uidBytes = append(uidBytes, unsafe.Slice((*byte)(unsafe.Add(row, 16)), 8)...)
	version, _ := identityHeaderOf(row)
	return packed.NewIdentity(identityKey(row), string(packed.AppendUID(nil, string(uidBytes))),
		strconv.FormatUint(version, 10))
}
