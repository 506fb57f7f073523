// Package difftest compares muntin with the Pi coding agent, whose formats it
// shares. It holds tests only, which are skipped unless the environment says
// where Pi is:
//
//	MUNTIN_PI    a node_modules folder that holds @earendil-works/pi-coding-agent
//	MUNTIN_NODE  a node 22.19 or newer (default: node)
package difftest
