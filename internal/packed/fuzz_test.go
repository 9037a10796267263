package packed_test

import (
	"strings"
	"testing"
)

func FuzzPackAgrees(f *testing.F) {
	for _, document := range handmade() {
		if len(document) < 10_000 {
			f.Add([]byte(document))
		}
	}
	all := pruners(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		// The reference takes minutes for deep nesting.
		if strings.Count(string(data), "[")+strings.Count(string(data), "{") > 2000 {
			return
		}
		for _, packer := range all {
			checkAgreement(t, packer, data)
		}
	})
}
