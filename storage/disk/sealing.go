package disk

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrKey is reported where what is kept was written with a key that Options.Keys does not have, or without
// one, or with one although there is none: it counts for nothing, and is written over.
var ErrKey = errors.New("what is kept was written with another key, or without one")

// keyLength is that of AES-256.
const keyLength = 32

// Records begin with how they are written.
const (
	plainRecord  = 'p'
	sealedRecord = 's'
	keyIDLength  = 8
)

// sealing encrypts and decrypts records. Without keys they are left as they are.
type sealing struct{ keys []sealingKey }

type sealingKey struct {
	id   []byte
	aead cipher.AEAD
}

// newSealing fails for keys that are none.
func newSealing(keys [][]byte) (*sealing, error) {
	s := &sealing{}
	for k, key := range keys {
		if len(key) != keyLength {
			return nil, fmt.Errorf("Options.Keys[%d] has %d bytes; keys have %d", k, len(key), keyLength)
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
		s.keys = append(s.keys, sealingKey{id[:keyIDLength], aead})
	}
	return s, nil
}

// seal returns the value of a record. With keys it is encrypted by the first, with a nonce of its own, and
// bound to its place.
func (s *sealing) seal(place, record []byte) []byte {
	if len(s.keys) == 0 {
		return append([]byte{plainRecord}, record...)
	}
	key := s.keys[0]
	value := append([]byte{sealedRecord}, key.id...)
	return key.aead.Seal(value, nil, record, place)
}

// open returns the record of a value, perhaps as a part of it, and whether it is written as seal would do
// now.
func (s *sealing) open(place, value []byte) (record []byte, asNow bool, err error) {
	switch {
	case len(value) > 0 && value[0] == plainRecord:
		if len(s.keys) > 0 { // which whoever can write to the files could have written
			return nil, false, fmt.Errorf("%w: it is not encrypted", ErrKey)
		}
		return value[1:], true, nil
	case len(value) > keyIDLength && value[0] == sealedRecord:
		id, rest := value[1:1+keyIDLength], value[1+keyIDLength:]
		for k, key := range s.keys {
			if bytes.Equal(key.id, id) {
				record, err := key.aead.Open(nil, nil, rest, place)
				if err != nil {
					return nil, false, fmt.Errorf("%w: %w", errDamaged, err)
				}
				return record, k == 0, nil
			}
		}
		return nil, false, fmt.Errorf("%w: that of id %x", ErrKey, id)
	}
	return nil, false, errDamaged
}
