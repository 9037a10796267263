package block

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"fmt"
)

const (
	keyLength   = 32 // of AES-256, in bytes
	keyIDLength = 8  // of the key's id before an encrypted record
)

// Cipher encrypts and decrypts records with AES-256-GCM, and binds them to a place. Nil does not encrypt.
type Cipher struct{ keys []aeadKey }

type aeadKey struct {
	id   []byte
	aead cipher.AEAD
}

// NewCipher returns a cipher that encrypts with the first key and decrypts with all; nil without keys.
func NewCipher(keys [][]byte) (*Cipher, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	c := &Cipher{}
	for k, key := range keys {
		if len(key) != keyLength {
			return nil, fmt.Errorf("Options.Keys[%d] has %d bytes, want %d", k, len(key), keyLength)
		}
		blockCipher, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(blockCipher)
		if err != nil {
			return nil, err
		}
		id := sha256.Sum256(append([]byte("crdcache storage/disk key\x00"), key...))
		c.keys = append(c.keys, aeadKey{id[:keyIDLength], aead})
	}
	return c, nil
}

// open decrypts a record. isCurrent reports whether seal would use the same key.
func (c *Cipher) open(content, place []byte) (record []byte, isCurrent bool, err error) {
	if len(content) < keyIDLength {
		return nil, false, ErrDamaged
	}
	for k, key := range c.keys {
		if bytes.Equal(key.id, content[:keyIDLength]) {
			record, err := key.aead.Open(nil, nil, content[keyIDLength:], place)
			if err != nil {
				return nil, false, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			return record, k == 0, nil
		}
	}
	return nil, false, fmt.Errorf("%w: key id %x", ErrKey, content[:keyIDLength])
}
