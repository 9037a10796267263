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
	// Key is "namespace/name", or the name of a cluster-scoped object.
	Key string
	// JSON is the object without its apiVersion, which is that of the type. It is valid until the next
	// record is read, and must not be changed.
	JSON []byte
	// Cells is the JSON of the server's table row from [Cells], if there is one. It is valid as long as JSON.
	Cells []byte
	// Position is the position of the record in the order in which the type was written, from 0.
	Position int
}

// AppendObject appends the object's JSON with an apiVersion.
func (r Record) AppendObject(dst []byte, apiVersion string) ([]byte, error) {
	quoted, err := json.Marshal(apiVersion)
	if err != nil {
		return dst, err
	}
	return r.AppendWith(dst, string(quoted))
}

// AppendWith is AppendObject for an apiVersion that is JSON already.
func (r Record) AppendWith(dst []byte, quoted string) ([]byte, error) {
	if len(r.JSON) <= len("{}") || r.JSON[0] != '{' {
		return dst, fmt.Errorf("%s: the record has no object", r.Key)
	}
	dst = append(append(dst, `{"apiVersion":`...), quoted...)
	return append(append(dst, ','), r.JSON[1:]...), nil
}

var (
	errNoObject            = errors.New("not a JSON object")
	errDuplicateAPIVersion = errors.New("the object has a duplicate apiVersion")
	errNoName              = errors.New("the object has no metadata.name")
)

// identity has the parts of an object that a record needs.
type identity struct {
	namespace, name string
	hasKind         bool
	// apiVersionStart and apiVersionEnd delimit the apiVersion member and a comma next to it.
	apiVersionStart, apiVersionEnd int
}

// parseIdentity parses an object's JSON without surrounding white space.
func parseIdentity(object []byte) (identity, error) {
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
			id.hasKind = true
		case "apiVersion":
			if id.apiVersionEnd > 0 {
				return id, errDuplicateAPIVersion
			}
			id.apiVersionStart, id.apiVersionEnd = m.Start, m.End
		}
	}
	if id.apiVersionEnd > 0 {
		switch next := jsontext.SkipSpace(object, id.apiVersionEnd); {
		case object[next] == ',':
			id.apiVersionEnd = jsontext.SkipSpace(object, next+1)
		default: // it is the last member
			if comma := bytes.LastIndexByte(object[:id.apiVersionStart], ','); comma >= 0 {
				id.apiVersionStart = comma
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
