package readapi

import (
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectWithUID is an Object that knows its UID without parsing its JSON.
type ObjectWithUID interface {
	Object
	GetUID() types.UID
}

// ParseShardSelector parses a shard selector like an API server with the feature ShardedListAndWatch: a term
// shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000'), or several terms with the same
// field, joined by ||. Of CEL's syntax it supports strings in single and double quotes. It does not support
// parentheses around terms.
func ParseShardSelector(text string) (sharding.Selector, error) {
	var all []sharding.ShardRangeRequirement
	for term := range strings.SplitSeq(text, "||") {
		found := shardRange.FindStringSubmatch(term)
		if found == nil {
			return nil, fmt.Errorf("%q is not of the form shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", strings.TrimSpace(term))
		}
		one := sharding.ShardRangeRequirement{Key: found[1], Start: found[2] + found[3],
			End: found[4] + found[5]}
		all = append(all, one)
		switch {
		case one.Key != all[0].Key:
			return nil, fmt.Errorf("all shard ranges must use the same field, got %q and %q",
				all[0].Key, one.Key)
		case len(one.Start) > len(shardStart) || len(one.End) > len(shardStart) && one.End != shardEnd:
			return nil, errors.New("the bounds of a shard range have 16 hexadecimal digits, but for " +
				shardEnd)
		case !sharding.HexLess(one.Start, one.End):
			return nil, fmt.Errorf("shard range start %s must be less than end %s", one.Start, one.End)
		}
	}
	return sharding.NewSelector(all...), nil
}

// The ends of the hash space.
const (
	shardStart = "0x0000000000000000"
	shardEnd   = "0x10000000000000000"
)

// shardRange matches one term of a selector.
var shardRange = regexp.MustCompile(`^\s*shardRange\s*\(\s*(object\.metadata\.(?:uid|namespace))\s*,\s*` +
	quotedHash + `\s*,\s*` + quotedHash + `\s*\)\s*$`)

const quotedHash = `(?:'(0x[0-9a-f]{16,17})'|"(0x[0-9a-f]{16,17})")`

// shardSelection is a parsed shard selector.
type shardSelection struct {
	text        string
	byNamespace bool
	ranges      []hashRange
}

// hashRange is a range of the hash space, including both ends.
type hashRange struct{ first, last uint64 }

// newShardSelection returns nil if the text is empty.
func newShardSelection(t *resource, text string) (*shardSelection, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := ParseShardSelector(text)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid shard selector: %v", err))
	}
	s := &shardSelection{text: selector.String()}
	for _, r := range selector.Requirements() {
		s.byNamespace = r.Key == "object.metadata.namespace"
		start, _ := strconv.ParseUint(r.Start, 0, 64) // the selector is valid
		end, _ := strconv.ParseUint(r.End, 0, 64)     // the end of the hash space overflows
		if r.End == shardEnd {
			end = 0
		}
		s.ranges = append(s.ranges, hashRange{start, end - 1})
	}
	return s, nil
}

// has reports whether an object is in the shard.
func (s *shardSelection) has(o Object) bool {
	if s == nil {
		return true
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.valueOf(o))) // never fails
	at := hash.Sum64()
	for _, r := range s.ranges {
		if at >= r.first && at <= r.last {
			return true
		}
	}
	return false
}

// valueOf returns the value that is hashed. It is empty if the metadata cannot be read, so that the object
// belongs to exactly one shard.
func (s *shardSelection) valueOf(o Object) string {
	if s.byNamespace {
		namespace, _ := splitKey(o.Key())
		return namespace
	}
	if identified, ok := o.(ObjectWithUID); ok {
		return string(identified.GetUID())
	}
	m, err := partialOf(o)
	if err != nil {
		return ""
	}
	return string(m.GetUID())
}

// info returns the shardInfo of a list.
func (s *shardSelection) info() *metav1.ShardInfo {
	if s == nil {
		return nil
	}
	return &metav1.ShardInfo{Selector: s.text}
}
