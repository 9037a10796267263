package readapi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/naming"
)

// ObjectWithUID is an Object that knows its UID without parsing its JSON.
type ObjectWithUID interface {
	Object
	GetUID() types.UID
}

// ShardSelector selects objects by the hash of one of their fields. The zero value selects no object.
type ShardSelector struct {
	Key    sharding.Key
	Ranges []sharding.Range
	text   string
}

// String returns the selector in the form that API servers return in a list's shardInfo.
func (s *ShardSelector) String() string { return s.text }

// Contains reports whether the selector selects an object whose Key field has this hash.
func (s *ShardSelector) Contains(hash uint64) bool {
	return slices.ContainsFunc(s.Ranges, func(r sharding.Range) bool { return r.Contains(hash) })
}

// ParseShardSelector parses a shard selector like an API server with the feature ShardedListAndWatch: a term
// shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000'), or several terms with the same
// field, joined by ||. Strings have single or double quotes, as in CEL. Parentheses around
// terms are not supported.
func ParseShardSelector(text string) (*ShardSelector, error) {
	s := &ShardSelector{}
	var terms []string
	for term := range strings.SplitSeq(text, "||") {
		found := shardRangePattern.FindStringSubmatch(term)
		if found == nil {
			return nil, fmt.Errorf("%q is not of the form shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", strings.TrimSpace(term))
		}
		key, start, end := sharding.Key(found[1]), found[2]+found[3], found[4]+found[5]
		switch {
		case s.Key != "" && key != s.Key:
			return nil, fmt.Errorf("all shard ranges must use the same field, got %q and %q", "object."+s.Key,
				"object."+key)
		case len(start) > len(shardStart) || len(end) > len(shardStart) && end != shardEnd:
			return nil, errors.New("the bounds of a shard range must have 16 hexadecimal digits; only the end can be " +
				shardEnd)
		case end != shardEnd && start >= end:
			return nil, fmt.Errorf("shard range start %s must be less than end %s", start, end)
		}
		parsed := sharding.Range{}
		parsed.Start, _ = strconv.ParseUint(start, 0, 64) // the pattern checked the digits
		if end != shardEnd {
			parsed.End, _ = strconv.ParseUint(end, 0, 64)
		}
		s.Key, s.Ranges = key, append(s.Ranges, parsed)
		terms = append(terms, fmt.Sprintf("shardRange(object.%s, '%s', '%s')", key, start, end))
	}
	s.text = strings.Join(terms, " || ")
	return s, nil
}

// The ends of the hash space.
const (
	shardStart = "0x0000000000000000"
	shardEnd   = "0x10000000000000000"
)

var shardRangePattern = regexp.MustCompile(`^\s*shardRange\s*\(\s*object\.(metadata\.(?:uid|namespace))\s*,\s*` +
	quotedHash + `\s*,\s*` + quotedHash + `\s*\)\s*$`)

const quotedHash = `(?:'(0x[0-9a-f]{16,17})'|"(0x[0-9a-f]{16,17})")`

// shardSelectorOf parses the parameter of a request. It returns nil if the text is empty.
func shardSelectorOf(text string) (*ShardSelector, error) {
	if text == "" {
		return nil, nil
	}
	s, err := ParseShardSelector(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid shard selector: %v", err))
	}
	return s, nil
}

func (s *ShardSelector) selects(o Object) bool {
	return s == nil || s.Contains(sharding.Hash(s.keyValue(o)))
}

// keyValue returns the value of the Key field, which is hashed. It is empty if the metadata cannot be read,
// so that the object belongs to exactly one shard.
func (s *ShardSelector) keyValue(o Object) string {
	if s.Key == sharding.ByNamespace {
		namespace, _ := naming.SplitKey(o.Key())
		return namespace
	}
	if identified, ok := o.(ObjectWithUID); ok {
		return string(identified.GetUID())
	}
	m, err := partialMetadataOf(o)
	if err != nil {
		return ""
	}
	return string(m.GetUID())
}

// shardInfo is metav1.ShardInfo, which exists only since apimachinery 0.36.
type shardInfo struct {
	Selector string `json:"selector"`
}

func (s *ShardSelector) shardInfo() *shardInfo {
	if s == nil {
		return nil
	}
	return &shardInfo{s.text}
}
