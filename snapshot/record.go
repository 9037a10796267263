package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Record is an object in a file.
type Record struct {
	// Key is "namespace/name", or the name alone.
	Key string
	// JSON is the object without its apiVersion, which is that of the type. It is good until the next record
	// is asked for, and must not be changed.
	JSON []byte
	// Cells is the row of the server's table in JSON, if there was one, as [Cells] makes it. It is as good as
	// JSON.
	Cells []byte
	// Place counts the records of a type in the order in which they were written, from 0.
	Place int
}

// AppendObject appends the object with an apiVersion.
func (r Record) AppendObject(dst []byte, apiVersion string) ([]byte, error) {
	quoted, err := json.Marshal(apiVersion)
	if err != nil {
		return dst, err
	}
	return r.AppendWith(dst, string(quoted))
}

// AppendWith is AppendObject for an apiVersion that is written in JSON with its quotes.
func (r Record) AppendWith(dst []byte, quoted string) ([]byte, error) {
	if len(r.JSON) <= len("{}") || r.JSON[0] != '{' {
		return dst, fmt.Errorf("%s: the file has no object there", r.Key)
	}
	dst = append(append(dst, `{"apiVersion":`...), quoted...)
	return append(append(dst, ','), r.JSON[1:]...), nil
}

var (
	errNoObject = errors.New("this is no JSON object")
	errTwice    = errors.New("the object has its apiVersion twice")
	errNoName   = errors.New("the object has no metadata.name")
)

// identity is what a record needs to know of an object.
type identity struct {
	namespace, name string
	kind            bool
	// begin and end are where the apiVersion is, with a comma.
	begin, end int
}

// identify checks the JSON of an object, without white space around it.
func identify(object []byte) (identity, error) {
	var id identity
	var metadata []byte
	for m, err := range jsontext.Members(object) {
		if err != nil {
			return id, errNoObject
		}
		switch string(m.Key) {
		case "metadata":
			metadata = m.Value
		case "kind":
			id.kind = true
		case "apiVersion":
			if id.end > 0 {
				return id, errTwice
			}
			id.begin, id.end = m.Start, m.End
		}
	}
	if id.end > 0 {
		switch next := jsontext.Space(object, id.end); {
		case object[next] == ',':
			id.end = jsontext.Space(object, next+1)
		default: // it is the last member
			if comma := bytes.LastIndexByte(object[:id.begin], ','); comma >= 0 {
				id.begin = comma
			}
		}
	}
	for m, err := range jsontext.Members(metadata) {
		switch string(m.Key) {
		case "name":
			err = json.Unmarshal(m.Value, &id.name)
		case "namespace":
			err = json.Unmarshal(m.Value, &id.namespace)
		}
		if err != nil {
			return id, errNoName
		}
	}
	if id.name == "" {
		return id, errNoName
	}
	return id, nil
}

func (id identity) key() string {
	if id.namespace == "" {
		return id.name
	}
	return id.namespace + "/" + id.name
}
