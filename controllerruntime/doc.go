// Package controllerruntime puts the informers of dynamicinformer under controller-runtime: a cache.Cache that keeps
// objects as JSON.
//
// # Usage
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{NewCache: controllerruntime.NewCache})
package controllerruntime
