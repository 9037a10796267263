// Command sbom writes the software bill of materials of a Go program in CycloneDX JSON: its linked modules
// with their checksums from go.sum. It reads only the program file, so its output is reproducible.
package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM >PROGRAM.cdx.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program string, out io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	bill, err := billOf(info)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
}

// billOf returns the bill of materials of a program.
func billOf(info *debug.BuildInfo) (*cyclonedx.BOM, error) {
	program, err := component(cyclonedx.ComponentTypeApplication, &info.Main)
	if err != nil {
		return nil, err
	}
	library := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: "std", Version: info.GoVersion, BOMRef: purl("std",
			info.GoVersion),
		PackageURL: purl("std", info.GoVersion), Description: "the standard library of Go",
	}
	components := []cyclonedx.Component{library}
	references := []string{library.BOMRef}
	for _, module := range info.Deps {
		c, err := component(cyclonedx.ComponentTypeLibrary, module)
		if err != nil {
			return nil, err
		}
		components, references = append(components, c), append(references, c.BOMRef)
	}

	bill := cyclonedx.NewBOM()
	bill.Metadata = &cyclonedx.Metadata{Component: &program, Timestamp: setting(info, "vcs.time")}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &references}}
	return bill, nil
}
