package server

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/sharding"

	"github.com/crdcache/crdcache/serving/readapi"
)

// FuzzShardSelector compares the parser of selectors with that of API servers.
func FuzzShardSelector(f *testing.F) {
	for _, text := range []string{
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
		" shardRange ( object.metadata.namespace,\n'0x0000000000000000', \"0x10000000000000000\" )\t",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000') || shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0', '0x1')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000f')",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')", "||",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readapi.ParseShardSelector(text)
		if err != nil {
			return // parentheses and other CEL strings are not supported here
		}
		want, err := sharding.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) succeeded, but API servers return %v", text, err)
		}
		if got.String() != want.String() {
			t.Errorf("%q is parsed as %q, API servers return %q", text, got, want)
		}
		for _, uid := range []types.UID{"", "a", types.UID(text)} {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid,
				Namespace: text}}
			selects, err := want.Matches(object)
			if err != nil || selects != got.Contains(got.Key.Hash(object)) {
				t.Errorf("selector %q for the UID %q: %v, %v", text, uid, selects, err)
			}
		}
	})
}
