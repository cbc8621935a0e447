// Programs include this name for the runtime; everything is declared in one file here.

#ifndef ADASUM_CANN_ACL_ACL_RT_H
#define ADASUM_CANN_ACL_ACL_RT_H

#include "acl/acl.h"

#endif
