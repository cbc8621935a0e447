// Programs include this name for profiling; everything is declared in one file here.

#ifndef ADASUM_CANN_ACL_ACL_PROF_H
#define ADASUM_CANN_ACL_ACL_PROF_H

#include "acl/acl.h"

#endif
