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
	// JSON is the object without its apiVersion, which is that of the type. It is good until the next record is asked for,
	// and must not be changed.
	JSON []byte
	// Cells is the row of the server's table in JSON, if there was one, as [Cells] makes it. It is as good as JSON.
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

// members calls take with the keys of a JSON object, as they are written without quotes, and with the text of its values.
func members(text []byte, take func(key, value []byte, from, to int)) error {
	at := jsontext.Space(text, 0)
	if at >= len(text) || text[at] != '{' {
		return errNoObject
	}
	at = jsontext.Space(text, at+1)
	for first := true; ; first = false {
		if at < len(text) && text[at] == '}' && first {
			at++
			break
		}
		from := at
		if at >= len(text) || text[at] != '"' {
			return errNoObject
		}
		end := jsontext.Text(text, at+1)
		if end < 0 {
			return errNoObject
		}
		key := text[at+1 : end-1]
		if end = jsontext.Colon(text, end); end < 0 {
			return errNoObject
		}
		value := jsontext.Space(text, end)
		end, ok, _ := jsontext.SkipValue(text, value)
		if !ok {
			return errNoObject
		}
		take(key, text[value:end], from, end)
		if at = jsontext.Space(text, end); at >= len(text) {
			return errNoObject
		}
		at++
		if text[at-1] == '}' {
			break
		}
		if text[at-1] != ',' {
			return errNoObject
		}
		at = jsontext.Space(text, at)
	}
	if jsontext.Space(text, at) != len(text) {
		return errNoObject
	}
	return nil
}

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
	twice := false
	err := members(object, func(key, value []byte, from, to int) {
		switch string(key) {
		case "metadata":
			metadata = value
		case "kind":
			id.kind = true
		case "apiVersion":
			twice = id.end > 0
			id.begin, id.end = from, to
		}
	})
	if err == nil && twice {
		err = errTwice
	}
	if err != nil {
		return id, err
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
	failed := members(metadata, func(key, value []byte, _, _ int) {
		switch string(key) {
		case "name":
			err = errors.Join(err, json.Unmarshal(value, &id.name))
		case "namespace":
			err = errors.Join(err, json.Unmarshal(value, &id.namespace))
		}
	})
	if failed != nil || err != nil || id.name == "" {
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
