package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// component describes a module, or its replacement.
func component(kind cyclonedx.ComponentType, module *debug.Module) (cyclonedx.Component, error) {
	if module.Replace != nil {
		module = module.Replace
	}
	url := purl(module.Path, module.Version)
	c := cyclonedx.Component{Type: kind, Name: module.Path, Version: module.Version, BOMRef: url,
		PackageURL: url}
	if module.Sum == "" { // the main module
		return c, nil
	}
	hash, err := sha256Of(module.Sum)
	if err != nil {
		return c, fmt.Errorf("module %s: %w", module.Path, err)
	}
	c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hash}}
	return c, nil
}

// sha256Of converts a checksum of go.sum to hexadecimal. It is "h1:" and the base64 SHA-256 of the module's
// file list.
func sha256Of(sum string) (string, error) {
	encoded, found := strings.CutPrefix(sum, "h1:")
	if !found {
		return "", fmt.Errorf("the checksum %q is not of the form h1:…", sum)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("the checksum %q: %w", sum, err)
	}
	return hex.EncodeToString(raw), nil
}

// purl returns the package URL of a module (https://github.com/package-url/purl-spec, type golang).
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// setting returns a build setting such as vcs.time, or "".
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
