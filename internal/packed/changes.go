package packed

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// AppendChange appends a change to the text of a record: an object, or a deleted key if json is nil.
func AppendChange(text []byte, key string, json []byte) []byte {
	jsonLength := 0
	if json != nil {
		jsonLength = len(json) + 1
	}
	text = binary.AppendUvarint(binary.AppendUvarint(text, uint64(len(key))), uint64(jsonLength))
	return append(append(text, key...), json...)
}

// ReadChanges calls onChange for each change of a record. json is valid until onChange returns.
func ReadChanges(text []byte, onChange func(key string, json []byte) error) error {
	for len(text) > 0 {
		keyLength, n := binary.Uvarint(text)
		jsonLength, m := binary.Uvarint(text[max(n, 0):])
		size := uint64(len(text) - n - m)
		if n <= 0 || m <= 0 || keyLength > size || max(jsonLength, 1)-1 > size-keyLength {
			return errDamagedBlock
		}
		key, rest := string(text[n+m:][:keyLength]), text[n+m:][keyLength:]
		var json []byte
		if jsonLength > 0 {
			json, rest = rest[:jsonLength-1:jsonLength-1], rest[jsonLength-1:]
		}
		if err := onChange(key, json); err != nil {
			return err
		}
		text = rest
	}
	return nil
}

// ReadRecords calls add for the objects of a persisted content, in any order. load calls its
// argument for each record: blocks, followed by changes of their objects, which packer packs.
func ReadRecords(load persistence.LoadFunc, packer *Packer, add func(*Object)) error {
	changed := map[string]*Object{}
	var blocks [][]*Object
	err := load(func(record persistence.Record) error {
		if record.Bodies != nil {
			objects, err := ReadBlock(record.Head, record.Bodies, record.Retained)
			blocks = append(blocks, objects)
			return err
		}
		return ReadChanges(record.Head, func(key string, json []byte) (err error) {
			changed[key] = nil
			if json != nil {
				changed[key], err = packer.Pack(json)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, objects := range append(blocks, slices.Collect(maps.Values(changed))) {
		for _, o := range objects {
			if o == nil { // deleted
				continue
			}
			if latest, isChanged := changed[o.Key()]; !isChanged || latest == o {
				add(o)
			}
		}
	}
	return nil
}
