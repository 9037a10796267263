package main

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const path = "/apis/cert-manager.io/v1/certificates"

type event struct {
	Type   string
	Object unstructured.Unstructured
}
