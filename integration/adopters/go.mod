module github.com/crdcache/crdcache/integration/adopters

go 1.26.0
