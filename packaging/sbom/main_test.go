package main

import (
	"bytes"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
)

// The test writes its own bill of materials: it must be readable and contain the test's modules.
func TestRun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(program, out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of one program are different")
	}
	var bill cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bill); err != nil {
		t.Fatal(err)
	}
	found := slices.ContainsFunc(*bill.Components, func(c cyclonedx.Component) bool {
		return strings.HasPrefix(c.PackageURL, "pkg:golang/github.com/CycloneDX/cyclonedx-go@v") &&
			c.Hashes != nil && len((*c.Hashes)[0].Value) == 64
	})
	if !found {
		t.Errorf("the bill lacks a linked library:\n%+v", *bill.Components)
	}
}

func TestBillOfReplaced(t *testing.T) {
	sum := "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	bill, err := billOf(&debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "example.com/program", Version: "v1.2.3+dirty"},
		Deps: []*debug.Module{{Path: "example.com/old", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: sum}}},
		Settings: []debug.BuildSetting{{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := bill.Metadata.Component.PackageURL; got != "pkg:golang/example.com/program@v1.2.3%2Bdirty" {
		t.Errorf("the program is %s", got)
	}
	last := (*bill.Components)[1]
	if last.Name != "example.com/fork" ||
		(*last.Hashes)[0].Value != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("a replaced module is %+v, %v", last, *last.Hashes)
	}
}

func TestErrors(t *testing.T) {
	if err := run(t.TempDir(), nil); err == nil {
		t.Error("a folder has a bill")
	}
	for _, sum := range []string{"go.sum", "h1:?"} {
		if _, err := component(cyclonedx.ComponentTypeLibrary,
			&debug.Module{Path: "a", Sum: sum}); err == nil {
			t.Errorf("%q is taken for a checksum", sum)
		}
	}
}
