package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/sharding"

	"github.com/crdcache/crdcache/readapi"
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
			return // not supported here: parentheses, and other CEL strings
		}
		want, err := sharding.Parse(text)
		if err != nil {
			t.Fatalf("parsed %q, API servers return %v", text, err)
		}
		if diff := cmp.Diff(want.Requirements(), got.Requirements()); diff != "" ||
			got.String() != want.String() {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}
