module github.com/crdcache/crdcache/packaging/sbom

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.12.0
