package query

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
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
	values := naming.Map(token.Values,
		func(v []byte) sortValue { return sortValue{key: string(v), present: v != nil} })
	return cursor{position: position{key: token.Key, values: values}, isSet: true}, nil
}

// ClusterPage is a page of the objects of several clusters, such as a dynamicinformer.Group's. The
// caller queries the clusters in the order of their names, each with its own Querier, because references stay
// within a cluster. It is not safe for concurrent use.
type ClusterPage struct {
	options Options // Limit is that of all clusters, Continue the position in the first cluster
	first   string
	found   int
}

// NewClusterPage returns the page for Options.Limit and Options.Continue, and the name of the cluster at
// which it begins. The name is empty for the first page. The cluster may have left the group.
func NewClusterPage(options Options) (page *ClusterPage, first string, err error) {
	if options.Continue != "" {
		slash := strings.LastIndexByte(options.Continue, '/') // the name of a cluster can have slashes
		if slash < 0 {
			return nil, "", ErrContinue
		}
		first, options.Continue = options.Continue[:slash], options.Continue[slash+1:]
	}
	return &ClusterPage{options: options, first: first}, first, nil
}

// Options returns the options for a query of the next cluster. If the page is full, the query only finds
// out whether the cluster has matching objects.
func (p *ClusterPage) Options(cluster string) (options Options, isFull bool) {
	options = p.options
	if cluster != p.first {
		options.Continue = ""
	}
	if options.Limit <= 0 {
		return options, false
	}
	remaining := options.Limit - p.found
	options.Limit = max(remaining, 1)
	return options, remaining <= 0
}

// Add records the number of objects in the result of a cluster, and its continue token. It returns the token
// of the next page; empty if the page continues with the next cluster.
func (p *ClusterPage) Add(cluster string, objects int, token string) (next string) {
	_, isFull := p.Options(cluster)
	p.found += objects
	switch {
	case isFull && objects > 0:
		return cluster + "/"
	case !isFull && token != "":
		return cluster + "/" + token
	}
	return ""
}

// PrependCluster returns groups with the cluster as the first of Group.Values.
func PrependCluster(cluster string, groups []Group) []Group {
	groups = slices.Clone(groups)
	for i, g := range groups {
		groups[i].Values = slices.Insert(slices.Clone(g.Values), 0, cluster)
	}
	return groups
}
