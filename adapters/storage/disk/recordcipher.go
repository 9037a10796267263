package disk

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrKey is reported if persisted data is encrypted with a key that is not in Options.Keys, or is not
// encrypted although Options.Keys is set. The data is ignored and overwritten.
var ErrKey = errors.New("the persisted data was written with another key, or without one")

// keyLength is the key length of AES-256 in bytes.
const keyLength = 32

// The first byte of a value is its format. In sealedRecord, a key id of keyIDLength bytes follows.
const (
	plainRecord  = 'p'
	sealedRecord = 's'
	keyIDLength  = 8
)

// recordCipher encrypts and decrypts records. Without keys it does not change them.
type recordCipher struct{ keys []aeadKey }

type aeadKey struct {
	id   []byte
	aead cipher.AEAD
}

// newRecordCipher returns an error for keys of the wrong length.
func newRecordCipher(keys [][]byte) (*recordCipher, error) {
	c := &recordCipher{}
	for k, key := range keys {
		if len(key) != keyLength {
			return nil, fmt.Errorf("Options.Keys[%d] has %d bytes, want %d", k, len(key), keyLength)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		id := sha256.Sum256(append([]byte("crdcache storage/disk key\x00"), key...))
		c.keys = append(c.keys, aeadKey{id[:keyIDLength], aead})
	}
	return c, nil
}

// seal returns the value that the database stores for a record. recordKey is the key of the record in the
// database. If there are keys, seal encrypts the record with the first key and a random nonce, and binds it
// to recordKey.
func (r *recordCipher) seal(recordKey, record []byte) []byte {
	if len(r.keys) == 0 {
		return append([]byte{plainRecord}, record...)
	}
	key := r.keys[0]
	value := append([]byte{sealedRecord}, key.id...)
	return key.aead.Seal(value, nil, record, recordKey)
}

// open returns the record in a value; recordKey is the same as for seal. The record may share the memory of
// the value. isCurrentKey reports whether seal would use the same key.
func (r *recordCipher) open(recordKey, value []byte) (record []byte, isCurrentKey bool, err error) {
	switch {
	case len(value) > 0 && value[0] == plainRecord:
		if len(r.keys) > 0 { // anyone who can write the files could have written it
			return nil, false, fmt.Errorf("%w: it is not encrypted", ErrKey)
		}
		return value[1:], true, nil
	case len(value) > keyIDLength && value[0] == sealedRecord:
		id, rest := value[1:1+keyIDLength], value[1+keyIDLength:]
		for k, key := range r.keys {
			if bytes.Equal(key.id, id) {
				record, err := key.aead.Open(nil, nil, rest, recordKey)
				if err != nil {
					return nil, false, fmt.Errorf("%w: %w", errDamaged, err)
				}
				return record, k == 0, nil
			}
		}
		return nil, false, fmt.Errorf("%w: key id %x", ErrKey, id)
	}
	return nil, false, errDamaged
}
