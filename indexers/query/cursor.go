package query

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
)

// cursor is the position after which a page begins.
type cursor struct {
	position
	isSet bool
}

// wireToken is the JSON form of a cursor. Values are bytes because index keys need not be UTF-8; null marks
// an object without a value.
type wireToken struct {
	Values [][]byte `json:"v,omitempty"`
	Key    string   `json:"k"`
	Query  uint64   `json:"q"`
}

// fingerprint returns a hash of the query, its operands and its order. It does not depend on the restrictions
// of Narrow.
func fingerprint(query Query, options Options) uint64 {
	query = withoutNarrowing(query)
	hash := fnv.New64a()
	write := func(part string) {
		_, _ = io.WriteString(hash, strconv.Quote(part))
	} // a hash returns no errors
	write(query.String())
	for _, part := range subqueries(query) {
		switch part := part.(type) {
		case *comparison:
			for _, v := range part.values {
				for _, operand := range v.parts {
					write(operand)
				}
			}
		case *labelQuery:
			write(part.text)
		case *condition:
			write(part.text)
		case *celQuery:
			write(part.String())
		case *referenceQuery:
			write(fmt.Sprintf("%q %q", part.reference, part.object))
		}
	}
	write(options.SortBy)
	write(strconv.FormatBool(options.Descending))
	return hash.Sum64()
}

// encode returns the continue token.
func (c cursor) encode(query Query, options Options) string {
	token := wireToken{Key: c.key, Query: fingerprint(query, options)}
	for _, v := range c.values {
		var bytes []byte
		if v.present {
			bytes = []byte(v.key)
		}
		token.Values = append(token.Values, bytes)
	}
	data, _ := json.Marshal(token) // all fields can be encoded
	return base64.RawURLEncoding.EncodeToString(data)
}

// readCursor decodes a continue token for an order with a number of terms. An empty token is the beginning.
func readCursor(text string, query Query, options Options, terms int) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	var token wireToken
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &token) != nil || token.Query != fingerprint(query, options) ||
		len(token.Values) != terms {
		return cursor{}, ErrContinue
	}
	c := cursor{position: position{key: token.Key}, isSet: true}
	for _, v := range token.Values {
		c.values = append(c.values, sortValue{key: string(v), present: v != nil})
	}
	return c, nil
}
